"""Does the catalog say what the log says? Every difference by name, version and path."""

from mainstem.validate.report import Finding, Report
from mainstem.validate.run import Form, require_agreement, require_form, validate

__all__ = ["Finding", "Form", "Report", "require_agreement", "require_form", "validate"]
