import pytest

from trio_sched.plugin_api import SKIP, Code, Status, failure, pending, unresolvable, unschedulable


@pytest.mark.parametrize(
    ("status", "code", "label", "rejected"),
    [
        (unschedulable("a"), 2, "Unschedulable", True),
        (unresolvable("a"), 3, "UnschedulableAndUnresolvable", True),
        (pending("a"), 6, "Pending", True),
        (failure("a"), 1, "Error", False),
        (SKIP, 5, "Skip", False),
        (Status(Code.WAIT), 4, "Wait", False),
        (Status(Code.SUCCESS), 0, "Success", False),
    ],
)
def test_codes_are_numbered_and_called_as_in_the_framework(
    status: Status, code: int, label: str, rejected: bool
) -> None:
    assert (status.code, status.code.label, status.is_rejected) == (code, label, rejected)


def test_the_text_of_an_error_comes_before_the_reasons() -> None:
    status = failure(LookupError("no key"), "while looking", "in the drawer")
    assert status.all_reasons == ("no key", "while looking", "in the drawer")
    assert status.message == "no key, while looking, in the drawer"
    assert isinstance(failure("just text").error, RuntimeError)


def test_a_status_is_signed_by_its_plugin() -> None:
    signed = unschedulable("full").by("Fit")
    assert (signed.plugin, signed.reasons) == ("Fit", ("full",))
    assert signed.by("Fit") is signed
