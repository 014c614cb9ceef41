// What the page asks the server for. Who is not logged in any more is asked for a key.

export class Refusal extends Error {
  constructor(message, kind, status) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}

export async function ask(method, path, body) {
  const options = { method, credentials: "same-origin", headers: {} };
  if (body !== undefined) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(`api/${path}`, options);
  } catch {
    throw new Refusal("The server cannot be reached.", "unreachable", 0);
  }
  if (!response.ok) throw await refusalOf(response);
  return response.json();
}

async function refusalOf(response) {
  let told = {};
  try {
    told = (await response.json()).error ?? {};
  } catch {
    // What is no JSON says nothing that a person could use.
  }
  if (response.status === 401) window.dispatchEvent(new CustomEvent("locked"));
  const message = told.message ?? `The server answered with ${response.status}.`;
  return new Refusal(message, told.kind ?? "", response.status);
}

// Calls `tell` with each event of a run after that number; gives how it stands when there are no more.
export async function follow(run, after, tell, signal) {
  const response = await fetch(`api/runs/${encodeURIComponent(run)}/events?after=${after}`, {
    credentials: "same-origin",
    signal,
  });
  if (!response.ok) throw await refusalOf(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let end = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const data = lines.find((line) => line.startsWith("data: "));
      if (!data) continue;
      const told = JSON.parse(data.slice(6));
      if (lines.includes("event: end")) end = told;
      else tell(told);
    }
  }
  if (!end) throw new Refusal("The connection ended before the run did.", "unreachable", 0);
  return end;
}
