"""Mistakes made on purpose in the bundled plugins, and the checks that must see each of them.

``python plugins/testing/tests/breakages`` makes them one after another, each in a copy of its
package, runs the package's suite, and compares what turned red with what should have. Every suite
is also run unbroken, so that a red check means the mistake and nothing else.
"""
