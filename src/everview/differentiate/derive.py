"""The plan for the change of a plan, when some of the relations it reads change."""

from __future__ import annotations

from everview.differentiate.rules import rule_of
from everview.plan.nodes import Empty, Plan
from everview.plan.traverse import schema_of, sources


def derive(plan: Plan, changed: frozenset[str] | None = None) -> Plan:
    """Δ`plan` when every source R changes by ΔR; a source not in `changed` changes by nothing.

    Q(R + ΔR) = Q(R) + ΔQ(R, ΔR).
    """

    def d(node: Plan) -> Plan:
        if changed is not None and not any(s.name in changed for s in sources(node)):
            return Empty(schema_of(node))
        return rule_of(node).apply(node, d)

    return d(plan)
