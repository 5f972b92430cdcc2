"""The composition of the whole: settings, the supervision tree as data, and running it.

* `settings` (with `sections/` and `settings_*`): `config.toml` as frozen values
* `config_context`: `get_config()` for plugins and tools
* `locations`: where data lives when nobody says so
* `chat_request`: what the command line asks of a chat
"""
