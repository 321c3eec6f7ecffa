"""The order in which people look for names."""

from app.rules.natural import MAX_KEY, natural_key

IN_ORDER = [
    "", "#1", "2 shops", "10 shops", "A", "Æsir", "Ärzte", "Bar", "Café 1", "cafe 2", "CAFÉ 10",
    "host-2.example", "host-10.example", "Łódź", "Lyon", "Ölmühle", "Shop", "Shop 1", "shop 02",
    "Shop 2b", "Shop 10", "Shop 99999999999999999999999", "Shop 100000000000000000000000",
    "Straße", "v1.9.12", "v1.10.2", "Zürich",
]  # fmt: skip


def test_numbers_are_ordered_by_value_and_letters_beside_their_plain_ones():
    ordered = sorted(IN_ORDER, key=lambda name: natural_key(name).encode(), reverse=True)
    assert ordered == IN_ORDER[::-1]


def test_case_and_marks_make_no_difference():
    assert natural_key("ÉCLAIR 007") == natural_key("eclair 7")


def test_no_key_is_too_long_for_an_index():
    ligature = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"
    for longest in ("1a" * 127, ligature * 255, "😀" * 255):
        assert len(natural_key(longest)) <= MAX_KEY
        assert len(natural_key(longest).encode()) < 2_700
