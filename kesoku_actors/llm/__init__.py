"""Models: the port, the registry, the provider actor that grants slots, and the providers.

* `port`: request, pieces, reply, errors
* `registry`: which providers there are, and which one answers
* `gate` `breaker`: slots, silence and outages of one provider
* `classify`: table P2, what to do about an error
* `scripted`: a model that plays a scenario
* `openai`: a client of any chat completions server. Its pure part: `openai_body` (rows to messages), `openai_rules`
  (P1), `openai_plain` (without tools), `openai_stream` (chunks to a reply)
* `claude` `gemini`: clients of both services, through their own SDKs (`claude_sdk`, `gemini_sdk`), by key or with a
  `google_token`. The pure part of each: `_names` (what it allows), `_body`, `_rules` and `_repair` (P1), `_stream`;
  beside them `claude_pause` (a message that pauses), `gemini_lines` and `gemini_arguments` (what comes in pieces)
* `talk` `repaired`: a history as the parts that every wire is made of, and what a repair fills in; pure
* `wire` `written` `kept_talk` `unchanged`: a request as it is sent, made of the one before it; `openai_request`,
  `claude_request` and `gemini_request` are the wires; pure. `stand_in` puts its talk into an SDK's request
* `media` `media_rules` `media_files` `media_pictures`: attachments as a model takes them
* `heard`: streams that are listened to, and closed when they are left
* `dialects`: tools in the exact words of each provider; pure
* `sse` `wellformed`: framing of streams and soundness of their data, for any provider
* `local` `local_options` `local_child` `local_server` `weights`: the embedded model, its process and its file

Providers are imported where they are made: an HTTP client is heavy.
"""
