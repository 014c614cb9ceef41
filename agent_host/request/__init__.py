"""One request from config to session: resolve, prepare, send, read, finish.

`run` holds the steps as a generator of effects and owns no socket; `drive` and `adrive` carry the
effects out, the one by blocking, the other by awaiting.
"""
