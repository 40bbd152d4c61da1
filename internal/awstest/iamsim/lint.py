"""Lints policies for package iamsim: {NAME: DOCUMENT} on standard input, a list of "NAME SID ISSUE: DETAIL" on standard output."""
import json
import sys
import warnings

warnings.filterwarnings("ignore", message="pkg_resources is deprecated")
import parliament  # noqa: E402


def detail(finding):
    """What is found, without the ARN of a format up to the name of the resource."""
    if isinstance(finding.detail, list):
        return ", ".join(sorted(f"{d['action']} {d['required_format'].split(':')[-1]}" if "action" in d else json.dumps(d) for d in finding.detail))
    if not finding.detail:  # some auditors say it where they should say where
        return " ".join(filter(None, [finding.location.get("type"), ", ".join(sorted(finding.location.get("actions", [])))]))
    return finding.detail if isinstance(finding.detail, str) else json.dumps(finding.detail)


def lint(name, document):
    policy = parliament.analyze_policy_string(json.dumps(document), include_community_auditors=True)
    return {f"{name} {f.issue}: {detail(f)}" for f in policy.findings}


def issue(finding):
    return finding.split(" ")[2]


findings = []
for name, document in json.load(sys.stdin).items():
    # One statement at a time says which it is. Only some issues are those of all statements together.
    alone, issues = set(), set()
    for statement in document["Statement"]:
        found = lint(f"{name} {statement['Sid']}", {**document, "Statement": [statement]})
        alone |= found
        issues |= {issue(f) for f in found}
    findings += alone
    findings += {f for f in lint(f"{name} all", document) if issue(f) not in issues}
json.dump(sorted(findings), sys.stdout)
