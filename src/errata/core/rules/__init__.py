"""Rules over metadata columns: conditions and their conjunctions, and the search for those that tell bad rows."""

from .conditions import Condition, check_rule, from_json, match_all, read_rule, to_pandas, to_sql, to_text

__all__ = ["Condition", "check_rule", "from_json", "match_all", "read_rule", "to_pandas", "to_sql", "to_text"]
