"""Models: the port, the registry, the provider actor that grants slots, and the providers.

* `port`: request, pieces, reply, errors
"""
