"""Agents that are instrumented with SDKs of others: python instrumented.py WHICH URL KEY

Each runs in a process of its own, as its libraries are set up for a whole process. The model is scripted: it asks for the
tool `weather`, and then answers. The tool knows Oslo, and fails for Rome.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

which, url, key = sys.argv[1:]
ENDPOINT = f"{url}/api/v1/otel"
HEADERS = {"Authorization": f"Bearer {key}"}
INSTRUCTIONS = "Be brief."
QUESTIONS = ["Weather in Oslo?", "And in Rome?"]
MODEL = "gpt-x"
os.environ.update(
    OTEL_EXPORTER_OTLP_ENDPOINT=ENDPOINT,
    OTEL_EXPORTER_OTLP_HEADERS=f"Authorization=Bearer%20{key}",
    OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
    OTEL_SERVICE_NAME=which,
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
    OPENAI_API_KEY="x",
    # It would call home.
    TRACELOOP_TELEMETRY="false",
    TRACELOOP_METRICS_ENABLED="false",
)


class Model(BaseHTTPRequestHandler):
    """OpenAI's Chat Completions."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = answer_to(asked["messages"])
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        usage = {"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35}
        head = {"id": "x", "created": 1, "model": asked["model"]}
        if asked.get("stream"):
            delta = dict(message)
            for index, call in enumerate(delta.get("tool_calls", [])):
                call["index"] = index
            chunk = {**head, "object": "chat.completion.chunk"}
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            last = {"index": 0, "delta": {}, "finish_reason": reason}
            chunks = [{**chunk, "choices": [choice]}, {**chunk, "choices": [last]}, {**chunk, "choices": [], "usage": usage}]
            body = "".join(f"data: {json.dumps(one)}\n\n" for one in chunks) + "data: [DONE]\n\n"
            kind = "text/event-stream"
        else:
            choices = [{"index": 0, "finish_reason": reason, "message": message}]
            body = json.dumps({**head, "object": "chat.completion", "choices": choices, "usage": usage})
            kind = "application/json"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        pass


def answer_to(messages: list[dict[str, Any]]) -> dict[str, Any]:
    turn = sum(message["role"] == "user" for message in messages)
    city = ["Oslo", "Rome"][turn - 1]
    if messages[-1]["role"] == "tool":
        return {"role": "assistant", "content": ["It is 4 degrees.", "I do not know."][turn - 1]}
    function = {"name": "weather", "arguments": json.dumps({"city": city})}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": function}]}


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
MODEL_URL = f"http://127.0.0.1:{server.server_port}/v1"
os.environ.update(OPENAI_BASE_URL=MODEL_URL)
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}


def weather(city: str) -> str:
    """Tells the weather of a city."""
    time.sleep(0.05)
    if city != "Oslo":
        raise ValueError("no such city")
    return "4 degrees"


def provider_of_spans() -> Any:
    """The global provider of spans, which names the session on each as a processor that copies baggage does."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(session_stamp())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def session_stamp() -> Any:
    from opentelemetry.sdk.trace import SpanProcessor

    class Stamp(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            span.set_attribute("session.id", which)

    return Stamp()


def provider_of_logs() -> Any:
    from opentelemetry._logs import set_logger_provider
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.resources import Resource

    provider = LoggerProvider(resource=Resource.create({"session.id": which}))
    provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    set_logger_provider(provider)
    return provider


def converse(call_tool: Any) -> None:
    """The loop of an agent that has no framework."""
    from openai import OpenAI

    client = OpenAI()
    messages: list[Any] = [{"role": "system", "content": INSTRUCTIONS}]
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        while True:
            answer = client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL])
            said = answer.choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                break
            for call in said.tool_calls:
                try:
                    result = call_tool(**json.loads(call.function.arguments))
                except ValueError as error:
                    result = str(error)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def openllmetry() -> None:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor
    from traceloop.sdk import Traceloop
    from traceloop.sdk.decorators import tool, workflow

    Traceloop.init(app_name=which, api_endpoint=ENDPOINT, headers=HEADERS, disable_batch=False, processor=None, instruments=set())
    OpenAIInstrumentor().instrument()
    Traceloop.set_association_properties({"session_id": which})
    workflow(name="support")(lambda: converse(tool(name="weather")(weather)))()
    from opentelemetry import trace

    trace.get_tracer_provider().force_flush()  # type: ignore[attr-defined]


def semconv_events() -> None:
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

    spans, logs = provider_of_spans(), provider_of_logs()
    OpenAIInstrumentor().instrument()
    converse(traced_tool())
    spans.shutdown()
    logs.shutdown()


def traced_tool() -> Any:
    """A tool with a span as the conventions want it, which the instrumentation of a client does not make."""
    from opentelemetry import trace

    def traced(city: str) -> str:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "weather",
            "gen_ai.tool.call.arguments": json.dumps({"city": city}),
        }
        with trace.get_tracer("agent").start_as_current_span("execute_tool weather", attributes=attributes) as span:
            result = weather(city)
            span.set_attribute("gen_ai.tool.call.result", result)
            return result

    return traced


def pydantic_ai() -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings
    from pydantic_ai.models.openai import OpenAIChatModel

    provider = provider_of_spans()
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
    converse_with_pydantic(Agent, OpenAIChatModel)
    provider.shutdown()


def converse_with_pydantic(agent_class: Any, model_class: Any) -> None:
    from pydantic_ai import ModelRetry

    agent = agent_class(model_class(MODEL), instructions=INSTRUCTIONS, name="support")

    @agent.tool_plain(name="weather")
    def tell(city: str) -> str:
        try:
            return weather(city)
        except ValueError as error:
            raise ModelRetry(str(error)) from error

    history = None
    for question in QUESTIONS:
        history = agent.run_sync(question, message_history=history).all_messages()


def logfire_openai() -> None:
    logfire = configured_logfire()
    logfire.instrument_openai()
    converse(traced_tool())
    logfire.shutdown()


def logfire_agents() -> None:
    logfire = configured_logfire()
    silence_agents()
    logfire.instrument_openai_agents()
    converse_with_agents()
    logfire.shutdown()


def configured_logfire() -> Any:
    import logfire
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    processors = [session_stamp(), BatchSpanProcessor(OTLPSpanExporter())]
    # It reads the variable as well, and would send everything twice.
    os.environ.pop("OTEL_EXPORTER_OTLP_ENDPOINT")
    logfire.configure(
        send_to_logfire=False,
        console=False,
        metrics=False,
        # It takes the name of a session for a secret.
        scrubbing=False,
        additional_span_processors=processors,
    )
    return logfire


def silence_agents() -> None:
    """Otherwise it sends its traces to OpenAI, too, and retries for half a minute."""
    from agents import set_trace_processors

    set_trace_processors([])


def converse_with_agents() -> None:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool
    from openai import AsyncOpenAI

    model = OpenAIChatCompletionsModel(MODEL, AsyncOpenAI())
    agent = Agent(name="support", instructions=INSTRUCTIONS, model=model, tools=[function_tool(weather)])
    session = SQLiteSession("s")

    async def run() -> None:
        for question in QUESTIONS:
            await Runner.run(agent, question, session=session)

    asyncio.run(run())


def openinference_agents() -> None:
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    provider = provider_of_spans()
    silence_agents()
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
    converse_with_agents()
    provider.shutdown()


def langsmith() -> None:
    os.environ.update(LANGSMITH_OTEL_ENABLED="true", LANGSMITH_OTEL_ONLY="true", LANGSMITH_TRACING="true")
    provider = provider_of_spans()
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool("weather")
    def tell(city: str) -> str:
        """Tells the weather of a city."""
        return weather(city)

    agent: Any = create_agent(ChatOpenAI(model=MODEL), [tell], system_prompt=INSTRUCTIONS)
    messages: list[Any] = []
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        try:
            messages = agent.invoke({"messages": messages}, {"metadata": {"thread_id": which}})["messages"]
        except ValueError:
            pass
    from langchain_core.tracers.langchain import wait_for_all_tracers

    wait_for_all_tracers()
    provider.shutdown()


def strands() -> None:
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    provider = provider_of_spans()
    agent = Agent(
        model=OpenAIModel(client_args={"api_key": "x", "base_url": MODEL_URL}, model_id=MODEL),
        system_prompt=INSTRUCTIONS,
        tools=[tool(name="weather")(weather)],
        callback_handler=None,
    )
    for question in QUESTIONS:
        agent(question)
    provider.shutdown()


def adk() -> None:
    os.environ.update(
        OTEL_SEMCONV_STABILITY_OPT_IN="gen_ai_latest_experimental",
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="SPAN_ONLY",
    )
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            contents = llm_request.contents
            asked = [part for one in contents if one.role == "user" for part in one.parts if part.text in QUESTIONS]
            turn = len(asked)
            if contents[-1].parts[-1].function_response:
                part = types.Part(text=["It is 4 degrees.", "I do not know."][turn - 1])
            else:
                call = types.FunctionCall(id=f"call_{turn}", name="weather", args={"city": ["Oslo", "Rome"][turn - 1]})
                part = types.Part(function_call=call)
            usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=30, candidates_token_count=5)
            yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)

    provider = provider_of_spans()

    def fails(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, str]:
        return {"error": str(error)}

    agent = LlmAgent(
        name="support", model=Scripted(model=MODEL), instruction=INSTRUCTIONS, tools=[weather], on_tool_error_callback=fails
    )
    runner = InMemoryRunner(agent=agent, app_name="shop")

    async def run() -> None:
        await runner.session_service.create_session(app_name="shop", user_id="mia", session_id=which)
        for question in QUESTIONS:
            message = types.Content(role="user", parts=[types.Part(text=question)])
            async for _ in runner.run_async(user_id="mia", session_id=which, new_message=message):
                pass

    asyncio.run(run())
    provider.shutdown()


globals()[which]()
