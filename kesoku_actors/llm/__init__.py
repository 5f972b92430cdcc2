"""Models: the port, the registry, the provider actor that grants slots, and the providers.

* `port`: request, pieces, reply, errors
* `registry`: which providers there are, and which one answers
* `gate` `breaker`: slots, silence and outages of one provider
* `classify`: table P2, what to do about an error
* `scripted`: a model that plays a scenario
* `openai`: a client of any chat completions server; `openai_body` `openai_rules` `openai_stream` `sse`: its pure part
* `local_server` `local_child` `weights`: the embedded model, its process and its file

Providers are imported where they are made: an HTTP client is heavy.
"""
