// The tool of the benchmarks behind the Model Context Protocol, by a server that costs next to nothing: `stdio`, or
// `http PORT`. It knows the methods that a client needs before it calls a tool, in the version with a handshake.
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const tool = {
  name: "fetch",
  description: "Return a text of that many characters.",
  inputSchema: { type: "object", properties: { chars: { type: "integer" } }, required: ["chars"] },
  annotations: { readOnlyHint: true },
};

const body = (chars) => randomBytes(Math.ceil((chars * 3) / 4)).toString("base64").slice(0, chars);

const methods = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "bench", version: "1" } }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": (params) => ({ content: [{ type: "text", text: body(params.arguments.chars) }] }),
};

function answer(line) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return ""; // a notification
  const known = methods[method];
  const outcome = known ? { result: known(params) } : { error: { code: -32601, message: "Method not found" } };
  return JSON.stringify({ jsonrpc: "2.0", id, ...outcome });
}

function overHttp(request, response) {
  if (request.method !== "POST") return response.writeHead(405).end();
  let given = "";
  request.on("data", (piece) => (given += piece));
  request.on("end", () => {
    const answered = answer(given);
    response.writeHead(answered ? 200 : 202, { "content-type": "application/json" }).end(answered);
  });
}

const [transport, port] = process.argv.slice(2);
if (transport === "http") {
  createServer(overHttp).listen(Number(port), "127.0.0.1");
} else {
  createInterface({ input: process.stdin }).on("line", (line) => {
    const answered = answer(line);
    if (answered) process.stdout.write(`${answered}\n`);
  });
}
