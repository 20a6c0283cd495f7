"""Boxes that a detector found beside what is there, from the files that both have."""

import json

import numpy as np
import pytest
from PIL import Image

import errata
from errata.core import InputError
from errata.inputs import read, read_detections
from errata.inputs.detections import Boxes, intersection_over_union, match

NAMES = ("car", "cat", "dog")


def scene(seed=0, count=400, size=(200, 100)):
    """Objects in images, and a detector that misses half of the small ones and takes some cats for dogs."""
    rng = np.random.default_rng(seed)
    objects = []
    found = []
    for image in range(count):
        for slot in range(3):
            small = bool(rng.random() < 0.25)
            side = 0.05 if small else 0.2
            kind = int(rng.integers(3))
            box = (0.2 + 0.3 * slot, 0.5, side, side)
            objects.append((image, kind, *box))
            if rng.random() < (0.5 if small else 0.05):
                continue
            seen = 2 if kind == 1 and rng.random() < 0.1 else kind
            shift = 0.01 * side
            found.append((image, seen, box[0] + shift, box[1], side, side, 0.9))
        if rng.random() < 0.2:
            found.append((image, 0, 0.05, 0.05, 0.05, 0.05, 0.4))  # nothing is there
    return objects, found, size


def write_text(folder, rows, count):
    folder.mkdir()
    for image in range(count):
        lines = [" ".join(map(str, row[1:])) for row in rows if row[0] == image]
        (folder / f"{image:06d}.txt").write_text("\n".join(lines))
    return folder


def write_json(path, found, size, first=1):
    width, height = size
    rows = [
        {
            "image_id": image,
            "category_id": kind + first,
            "bbox": [(x - w / 2) * width, (y - h / 2) * height, w * width, h * height],
            "score": score,
        }
        for image, kind, x, y, w, h, score in found
    ]
    path.write_text(json.dumps(rows))
    return path


def write_coco(path, objects, count, size):
    width, height = size
    images = [{"id": 10 + i, "file_name": f"{i:06d}.jpg", "width": width, "height": height} for i in range(count)]
    annotations = [
        {
            "image_id": 10 + image,
            "category_id": kind + 1,
            "bbox": [(x - w / 2) * width, (y - h / 2) * height, w * width, h * height],
        }
        for image, kind, x, y, w, h in objects
    ]
    categories = [{"id": i + 1, "name": name} for i, name in enumerate(NAMES)]
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def test_overlap_is_the_formula():
    a = np.array([[0.0, 0.0, 2.0, 2.0]])
    b = np.array([[1.0, 1.0, 3.0, 3.0], [5.0, 5.0, 6.0, 6.0], [0.0, 0.0, 2.0, 2.0]])
    assert np.allclose(intersection_over_union(a, b), [[1 / 7, 0, 1]])


def test_each_detection_is_of_one_object_and_its_own_class_comes_first():
    corners = np.array([[0, 0, 1, 1], [0, 0, 1, 0.9]], dtype=float)
    objects = Boxes(corners, np.array([0, 1]), np.ones(2))
    found = Boxes(corners[[0]], np.array([1]), np.ones(1))
    assert match(objects, found, 0.5).tolist() == [-1, 0]


def test_all_forms_of_files_give_the_same_rows(tmp_path):
    objects, found, size = scene(count=60)
    labels = write_text(tmp_path / "labels", objects, 60)
    detected = write_text(tmp_path / "detected", found, 60)
    images = tmp_path / "images"
    images.mkdir()
    for i in range(60):
        Image.new("RGB", size).save(images / f"{i:06d}.jpg")
    coco = write_coco(tmp_path / "coco.json", objects, 60, size)
    by_text = read_detections(detected, labels, class_names=NAMES)
    ways = [
        read_detections(write_json(tmp_path / "p1.json", found, size), labels, images=images, class_names=NAMES),
        read_detections(write_json(tmp_path / "p0.json", found, size, first=0), coco),
        read_detections(detected, coco),
    ]
    assert len(by_text) == len(objects)
    for other in ways:
        assert np.array_equal(other.losses, by_text.losses)
        assert other.row_ids.tolist() == by_text.row_ids.tolist()
        assert other.metadata["class"].tolist() == by_text.metadata["class"].tolist()
        assert np.allclose(other.metadata["share of the image"], by_text.metadata["share of the image"], atol=1e-6)
    assert ways[0].media.thumbnail(0, 64) is not None
    assert by_text.media is None


def test_missed_objects_are_found_by_an_audit_and_wrong_detections_are_rows_too(tmp_path):
    objects, found, _ = scene()
    labels = write_text(tmp_path / "labels", objects, 400)
    detected = write_text(tmp_path / "detected", found, 400)
    missed = read_detections(detected, labels, class_names=NAMES)
    assert missed.task == "loss"
    assert missed.groups[0] == missed.groups[2] == "000000"
    audit = errata.audit(missed)
    best = audit.confirmed[0]
    small = missed.metadata["share of the image"] < 0.01
    assert small[best.weights >= best.threshold].mean() > 0.9
    wrong = read_detections(detected, labels, class_names=NAMES, rows="detections")
    assert len(wrong) == len(found)
    nothing = np.isclose(wrong.metadata["x"], 0.05)
    assert wrong.losses[nothing].all()
    assert set(wrong.metadata["confidence"]) == {0.4, 0.9}
    sure = read_detections(detected, labels, class_names=NAMES, rows="detections", confidence=0.5)
    assert len(sure) == len(found) - nothing.sum()


def test_bad_files_are_one_sentence(tmp_path):
    objects, found, size = scene(count=5)
    labels = write_text(tmp_path / "labels", objects, 5)
    detected = write_text(tmp_path / "detected", found, 5)
    predictions = write_json(tmp_path / "predictions.json", found, size)
    cases = [
        ((predictions, labels), {}, r"image 000000 are in pixels and its size is not known; pass `images`"),
        ((tmp_path / "gone.json", labels), {}, "does not exist"),
        ((tmp_path / "results.csv", labels), {}, "one row an epoch"),
        ((detected, tmp_path / "empty"), {}, "no .txt files"),
        ((labels, labels), {}, r"line 1 of .* has 5 numbers where 6 are needed; save it with save_conf=True"),
        ((detected, labels), {"class_names": ["car"]}, "`class_names` has only 1"),
        ((detected, labels), {"rows": "boxes"}, '"objects" or "detections"; got'),
        ((detected, labels), {"images": tmp_path / "empty"}, "has no images"),
        ((detected, predictions), {}, "no COCO file"),
    ]
    (tmp_path / "empty").mkdir()
    for arguments, options, words in cases:
        with pytest.raises(InputError, match=words) as caught:
            read_detections(*arguments, **options)
        assert "\n" not in str(caught.value)
    (tmp_path / "detected" / "000000.txt").write_text("car 1 2 3 4 5")
    with pytest.raises(InputError, match=r"line 1 of .* is not `class x y width height`; got 'car 1"):
        read_detections(detected, labels)
    for file in detected.glob("*.txt"):
        file.rename(detected / f"other {file.name}")
    (tmp_path / "detected" / "other 000000.txt").write_text("")
    with pytest.raises(InputError, match="none of the images of"):
        read_detections(detected, labels)


def test_the_table_of_a_training_is_not_one_of_results(tmp_path):
    (tmp_path / "results.csv").write_text("epoch,train/box_loss,metrics/mAP50(B)\n1,0.5,0.4\n")
    with pytest.raises(InputError, match=r"one row an epoch of a training.*read_detections"):
        read(tmp_path / "results.csv")
