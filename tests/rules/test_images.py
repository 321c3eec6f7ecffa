"""The files that are accepted as an image of a status page, by their bytes."""

from base64 import b64encode

import pytest

from app.rules import images

SVG = '<svg xmlns="http://www.w3.org/2000/svg">{}</svg>'
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
DOCTYPE = '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/x.dtd">'
TAKEN = [
    (PNG, "image/png"),
    (b"\xff\xd8\xff\xe0" + bytes(20), "image/jpeg"),
    (b"GIF89a" + bytes(20), "image/gif"),
    (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    (b"\x00\x00\x01\x00\x01\x00", "image/x-icon"),
    (SVG.format('<circle r="4"/>').encode(), "image/svg+xml"),
    (
        f'<?xml version="1.0"?>{DOCTYPE}{SVG.format("<style>a{{}}</style>")}'.encode(),
        "image/svg+xml",
    ),
    (("\ufeff" + SVG.format("")).encode(), "image/svg+xml"),
]
REFUSED = [
    (b"", "no image"),
    (b"<html><script>alert(1)</script></html>", "no image"),
    (b"MZ\x90\x00", "no image"),
    (b"<svg><circle/></svg>", "no image"),  # browsers do not draw it
    (SVG.format("").encode()[:-1], "no image"),
    (SVG.format("<script>alert(1)</script>").encode(), "scripts"),
    (SVG.format('<x:script xmlns:x="http://www.w3.org/2000/svg"/>').encode(), "scripts"),
    (SVG.format('<g onload="alert(1)"/>').encode(), "scripts"),
    (SVG.format("<foreignObject/>").encode(), "scripts"),
    (f'<!DOCTYPE svg [<!ENTITY a "b">]>{SVG.format("&a;")}'.encode(), "scripts or entities"),
    *(
        (f'<?xml version="1.0" encoding="{name}"?>{SVG.format("")}'.encode(), "no image")
        for name in ("none-such", "rot13", "punycode", "utf-7", "utf-32")
    ),
    (PNG + bytes(images.MAX_IMAGE_BYTES), "too large: at most 100 KB"),
]


def test_images_are_recognized_by_their_bytes():
    for data, kind in TAKEN:
        text = b64encode(data).decode()
        assert images.read_base64(f" {text[:8]}\n{text[8:]}\n") == text
        assert images.type_of(data) == kind


@pytest.mark.parametrize(("data", "fault"), REFUSED)
def test_what_is_no_image_or_would_run_is_refused(data, fault):
    with pytest.raises(ValueError, match=fault):
        images.read_base64(b64encode(data).decode())


def test_what_is_no_base64_is_refused():
    for text in ("https://a.example/logo.png", "data:image/png;base64,AAAA", "AAA"):
        with pytest.raises(ValueError, match="base64"):
            images.read_base64(text)
