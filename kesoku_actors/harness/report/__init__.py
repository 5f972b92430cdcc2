"""A counterexample as a person reads it, and as a machine does.

* `text`: in a terminal or a pipe
* `mermaid`: a sequence diagram to paste into a page
* `page`: one HTML file with a space-time diagram of the failing run and the passing one
* `data`: JSON; its schema is `counterexample.schema.json`
"""

from kesoku_actors.harness.report.data import data_of, schema
from kesoku_actors.harness.report.mermaid import mermaid
from kesoku_actors.harness.report.page import page
from kesoku_actors.harness.report.text import text

__all__ = ["data_of", "mermaid", "page", "schema", "text"]
