// A model of three APIs that costs next to nothing: it reads a request without looking at it, and answers with a call
// of `fetch`, or with words once it has given as many calls as the path says: /STEPS/v1/…. Prints its port, then a line
// for each request that has come in whole.
import { createServer } from "node:http";

const RESULT_CHARS = 200;
const input = JSON.stringify({ chars: RESULT_CHARS });
let asked = 0;

const event = (data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
const usage = { input_tokens: 10, output_tokens: 10 };

function anthropic(calls, id) {
  const block = calls ? { type: "tool_use", id, name: "fetch", input: {} } : { type: "text", text: "" };
  const delta = calls ? { type: "input_json_delta", partial_json: input } : { type: "text_delta", text: "done" };
  const reason = calls ? "tool_use" : "end_turn";
  const message = { id: `m_${id}`, type: "message", role: "assistant", model: "m", content: [], stop_reason: null, stop_sequence: null, usage };
  return [
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: block },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 10 } },
    { type: "message_stop" },
  ].map(event).join("");
}

function responses(calls, id) {
  const item = calls
    ? { type: "function_call", id: `fc_${id}`, call_id: id, name: "fetch", arguments: input, status: "completed" }
    : { type: "message", id: `m_${id}`, role: "assistant", status: "completed", content: [{ type: "output_text", text: "done", annotations: [] }] };
  const details = { input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 20 };
  const response = { id: `r_${id}`, object: "response", created_at: 1, model: "m", output: [], status: "in_progress", tools: [], tool_choice: "auto", parallel_tool_calls: true };
  const about = { item_id: item.id, output_index: 0 };
  const said = calls
    ? [{ type: "response.function_call_arguments.delta", ...about, delta: input }, { type: "response.function_call_arguments.done", ...about, name: "fetch", arguments: input }]
    : [{ type: "response.output_text.delta", ...about, content_index: 0, delta: "done", logprobs: [] }];
  const begun = calls ? { ...item, arguments: "", status: "in_progress" } : { ...item, content: [], status: "in_progress" };
  return [
    { type: "response.created", response },
    { type: "response.output_item.added", output_index: 0, item: begun },
    ...said,
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: { ...response, status: "completed", output: [item], usage: { ...usage, ...details } } },
  ].map((data, number) => event({ ...data, sequence_number: number })).join("");
}

function chat(calls, id) {
  const call = { index: 0, id, type: "function", function: { name: "fetch", arguments: input } };
  const chunk = (choice) => `data: ${JSON.stringify({ id: `c_${id}`, object: "chat.completion.chunk", created: 1, model: "m", choices: choice ? [{ index: 0, ...choice }] : [], ...(choice ? {} : { usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 } }) })}\n\n`;
  const delta = calls ? { role: "assistant", tool_calls: [call] } : { role: "assistant", content: "done" };
  return chunk({ delta, finish_reason: null }) + chunk({ delta: {}, finish_reason: calls ? "tool_calls" : "stop" }) + chunk(null) + "data: [DONE]\n\n";
}

// Peers don't stream: the address /STEPS/whole/v1/… is answered in one piece.
function wholeChat(calls, id) {
  const call = { id, type: "function", function: { name: "fetch", arguments: input } };
  const message = calls ? { role: "assistant", content: null, tool_calls: [call] } : { role: "assistant", content: "done" };
  return JSON.stringify({ id: `c_${id}`, object: "chat.completion", created: 1, model: "m", choices: [{ index: 0, message, finish_reason: calls ? "tool_calls" : "stop" }], usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 } });
}

const dialects = { messages: anthropic, responses, completions: chat };

createServer((request, response) => {
  request.on("data", () => {});
  request.on("end", () => {
    asked += 1;
    process.stdout.write(`${asked}\n`);
    const parts = request.url.split("?")[0].split("/");
    const whole = parts[2] === "whole";
    const answer = whole ? wholeChat : dialects[parts.at(-1)];
    if (!answer) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": whole ? "application/json" : "text/event-stream" });
    response.end(answer(asked <= Number(parts[1]), `call_${String(asked).padStart(6, "0")}`));
  });
}).listen(0, "127.0.0.1", function () {
  process.stdout.write(`${this.address().port}\n`);
});
