import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from errata.core import InputError
from errata.inputs import ImageBytes, ImagePaths, read, read_texts

PROBS = np.array([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]])


def png():
    file = io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(file, "PNG")
    return file.getvalue()


def npz(tmp_path, **arrays):
    path = tmp_path / "results.npz"
    np.savez(path, **arrays)
    return path


def csv(tmp_path, text):
    path = tmp_path / "results.csv"
    path.write_text(text)
    return path


def parquet(tmp_path, columns):
    path = tmp_path / "results.parquet"
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path)
    return path


def test_npz_with_everything(tmp_path):
    path = npz(
        tmp_path,
        labels=[0, 1, 1, 1],
        probs=PROBS,
        ids=["a", "b", "c", "d"],
        groups=[1, 1, 2, 2],
        class_names=["cat", "dog"],
        image_path=["p.png"] * 4,
        **{"embedding": np.eye(4), "embedding:clip": np.ones((4, 2)), "metadata:age": [1, 2, 3, 4]},
    )
    (tmp_path / "p.png").write_bytes(png())
    ev = read(path, foreign=["clip"])
    assert ev.errors.tolist() == [False, False, True, False]
    assert ev.row_ids.tolist() == ["a", "b", "c", "d"]
    assert ev.groups.tolist() == [1, 1, 2, 2]
    assert ev.class_names == ("cat", "dog")
    assert list(ev.representations) == ["embedding", "clip"]
    assert ev.source("embedding").from_model
    assert not ev.source("clip").from_model
    assert ev.metadata["age"].tolist() == [1, 2, 3, 4]
    assert isinstance(ev.media, ImagePaths)
    assert ev.media.thumbnail(0, 8) is not None
    assert ev.origin.data is None


def test_npz_texts_losses_and_other_names_as_metadata(tmp_path):
    path = npz(tmp_path, losses=[0.1, 2.0], text=["good", "bad"], age=[3, 4])
    ev = read(path, metadata="age")
    assert [ev.media.text(i) for i in range(2)] == ["good", "bad"]
    assert ev.metadata["age"].tolist() == [3, 4]


def test_npz_names_must_be_known(tmp_path):
    with pytest.raises(InputError, match="`label`; did you mean `labels`"):
        read(npz(tmp_path, label=[0, 1], losses=[1.0, 2.0]))
    with pytest.raises(InputError, match=r"`metadata:aeg`.*did you mean `metadata:age`"):
        read(npz(tmp_path, losses=[1.0, 2.0], **{"metadata:age": [1, 2]}), metadata=["metadata:aeg"])
    with pytest.raises(InputError, match="representation `clup`; did you mean `clip`"):
        read(npz(tmp_path, losses=[1.0], **{"embedding:clip": np.ones((1, 2))}), foreign=["clup"])
    with pytest.raises(InputError, match="one name"):
        read(npz(tmp_path, **{"embedding": np.eye(2), "embedding:embedding": np.eye(2)}))


def test_npz_never_unpickles(tmp_path):
    path = npz(tmp_path, losses=[1.0, 2.0], labels=np.array(["a", None], dtype=object))
    with pytest.raises(InputError, match=r"`labels` in .*object array.*pickle"):
        read(path)


def test_damaged_npz_says_so(tmp_path):
    whole = npz(tmp_path, losses=np.random.default_rng(0).random(1000)).read_bytes()
    path = tmp_path / "cut.npz"
    for cut in (whole[:100], whole[: len(whole) // 2], b"losses"):
        path.write_bytes(cut)
        with pytest.raises(InputError, match="damaged"):
            read(path)
    flipped = bytearray(whole)
    flipped[500] ^= 255
    path.write_bytes(bytes(flipped))
    with pytest.raises(InputError, match="damaged"):
        read(path)
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(InputError, match=r"single array.*np\.savez"):
        read(path)


def test_files_that_are_not_there_or_of_another_kind(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path / "gone.npz")
    with pytest.raises(InputError, match="is a folder"):
        read(tmp_path)
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InputError, match=r"empty\.csv` is empty"):
        read(tmp_path / "empty.csv")
    (tmp_path / "x.txt").write_text("{}")
    with pytest.raises(InputError, match=r"must end in \.npz, \.safetensors, \.parquet, \.csv, .*; got `\.txt`"):
        read(tmp_path / "x.txt")
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="damaged"):
        read(tmp_path / "x.parquet")


def test_csv_with_class_columns_and_text_labels(tmp_path):
    text = "ids,labels,prob:dog,prob:cat,embedding,embedding:x,text,note\n"
    text += '01,cat,0.1,0.9,"[1, 2.5]",1 2,"two\nlines",a\n'
    text += '02,dog,0.8,0.2,"[3,4]",  3   4 ,7,b\n'
    text += '03,dog,0.3,0.7,5;6,"5, 6",null,c\n'
    ev = read(csv(tmp_path, text))
    assert ev.class_names == ("dog", "cat")
    assert ev.labels.tolist() == [1, 0, 0]
    assert ev.errors.tolist() == [False, False, True]
    assert ev.row_ids.tolist() == ["01", "02", "03"]
    assert ev.representations["embedding"].tolist() == [[1, 2.5], [3, 4], [5, 6]]
    assert ev.representations["x"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert [ev.media.text(i) for i in range(3)] == ["two\nlines", "7", "null"]
    assert ev.metadata == {}


def test_csv_cells_may_have_lines_across_the_blocks_that_are_read(tmp_path):
    cell = "\n".join(["word"] * 5000)
    ev = read(csv(tmp_path, "losses,text\n" + "".join(f'{i},"{cell}"\n' for i in range(200))))
    assert len(ev) == 200
    assert ev.media.text(150) == cell


def test_csv_probs_as_lists_and_whole_ids_as_numbers(tmp_path):
    ev = read(csv(tmp_path, 'ids,labels,probs,losses\n7,0,"[0.9, 0.1]",1\n8,1,0.3 0.7,2\n'))
    assert ev.row_ids.dtype.kind == "i"
    assert ev.probs.tolist() == [[0.9, 0.1], [0.3, 0.7]]
    assert ev.losses.tolist() == [1, 2]


def test_csv_metadata_is_what_is_named_and_may_have_gaps(tmp_path):
    path = csv(tmp_path, "losses,age,city,day,metadata:kind\n1,30,Bonn,2020-01-02,a\n2,,,2020-01-03,b\n")
    ev = read(path, metadata=("age", "city", "day"))
    assert ev.metadata["age"][0] == 30
    assert np.isnan(ev.metadata["age"][1])
    assert ev.metadata["city"].tolist() == ["Bonn", ""]
    assert ev.metadata["day"].tolist() == ["2020-01-02", "2020-01-03"]
    assert list(read(path).metadata) == ["kind"]
    with pytest.raises(InputError, match="`aeg`; did you mean `age`"):
        read(path, metadata=["aeg"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0.1,3\n0.2,4\n", "no column that is known.*`0.1`, `3`"),
        ("a,b\n1,2\n", "no column that is known.*`a`, `b`.*losses"),
        ("losses,labels\n1,a\n2,\n", "`labels` has a missing value.*row 1"),
        ("losses\n1\n\nNaN\n", "`losses` has a missing value.*row 1"),
        ("labels,prob:a,prob:b\na,.5,.5\na,,.5\n", "`prob:a` has a missing value.*row 1"),
        ("losses,embedding\n1,[1 2]\n2,\n", "`embedding` has a missing value.*row 1"),
        ("losses,embedding\n1,[1 2]\n2,[1 2 3]\n", "`embedding`.*different lengths: row 1 has 3.*row 0 has 2"),
        ("losses,embedding\n1,[1 2]\n2,[1 x]\n", r"`embedding`.*'\[1 x\]' at row 1"),
        ("loss\n1\n", "`loss`.*under the name `losses`"),
        ("losses,losses\n1,2\n", "`losses` twice"),
        ("losses\n1,2\n", "damaged"),
        ("losses\n", "`losses` has no rows"),
        ("losses,text,image_path\n1,a,b\n", "both `text` and `image_path`"),
    ],
)
def test_csv_errors_are_one_sentence(tmp_path, text, words):
    with pytest.raises(InputError, match=words) as caught:
        read(csv(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_second_medium_may_be_metadata(tmp_path):
    ev = read(csv(tmp_path, "losses,text,image_path\n1,a,b.png\n"), metadata=["text"])
    assert ev.media.kind == "image"
    assert ev.metadata["text"].tolist() == ["a"]


def test_numbers_that_name_classes_are_names(tmp_path):
    ev = read(csv(tmp_path, "labels,prob:8,prob:3\n3,.1,.9\n8,.6,.4\n"))
    assert ev.labels.tolist() == [1, 0]
    ev = read(csv(tmp_path, "labels,predictions,prob:1,prob:0\n1,1,.9,.1\n0,1,.6,.4\n"))
    assert ev.class_names == ("1", "0")
    assert ev.errors.tolist() == [False, True]
    ev = read(csv(tmp_path, "labels,prob:cat,prob:dog\n1,.1,.9\n0,.6,.4\n"))
    assert ev.labels.tolist() == [1, 0]


def test_parquet_with_pictures_as_bytes(tmp_path):
    for image in ([png(), None], [{"bytes": png(), "path": "x.png"}, {"bytes": None, "path": None}]):
        ev = read(parquet(tmp_path, {"losses": [1.0, 2.0], "image": image}))
        assert isinstance(ev.media, ImageBytes)
        assert ev.media.thumbnail(0, 8)[:4] == b"\x89PNG"
        assert ev.media.thumbnail(1, 8) is None
    (tmp_path / "x.png").write_bytes(png())
    ev = read(parquet(tmp_path, {"losses": [1.0], "image": [{"bytes": None, "path": "x.png"}]}))
    assert ev.media.thumbnail(0, 8) is not None
    with pytest.raises(InputError, match="`image` must be a column of JPEG or PNG bytes; got string"):
        read(parquet(tmp_path, {"losses": [1.0], "image": ["x.png"]}))


def test_parquet_reads_only_the_columns_it_needs(tmp_path):
    table = pa.table({"losses": [1.0, 2.0], "huge": [[1], [2]], "age": [1, 2], "__index_level_0__": [0, 1]})
    ev = read(parquet(tmp_path, table), metadata=["age"])
    assert list(ev.metadata) == ["age"]
    with pytest.raises(InputError, match="`huge` must have one number or text a row"):
        read(parquet(tmp_path, table), metadata=["huge"])


# --- candidate texts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("array", "name"), [("embedding", "embedding"), ("embedding:clip", "clip")])
def test_texts_with_their_embeddings(tmp_path, array, name):
    found = read_texts(npz(tmp_path, texts=["a dog", "snow"], **{array: np.eye(2)}))
    assert (found.texts, found.representation) == (("a dog", "snow"), name)
    assert found.embeddings.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"texts": ["a"]}, "must hold `texts` .m,. and one of .*; got `texts`"),
        ({"embedding": np.eye(2)}, "got `embedding`"),
        ({"texts": ["a"], "embedding": np.eye(1), "embedding:clip": np.eye(1)}, "`embedding`, `embedding:clip`"),
        ({}, "got nothing"),
        ({"text": ["a"], "embedding": np.eye(1)}, "unknown array in `results.npz`: `text`; did you mean `texts`"),
        ({"texts": ["a", "b"], "embedding": np.eye(3)}, r"must have shape \(2, d\), one row a text; got \(3, 3\)"),
        ({"texts": np.array([], dtype=str), "embedding": np.ones((0, 2))}, "`texts` is empty"),
        ({"texts": np.array(["a", 1], dtype=object), "embedding": np.eye(2)}, "`texts` in .* is an object array"),
    ],
)
def test_texts_that_cannot_be_read(tmp_path, arrays, words):
    with pytest.raises(InputError, match=words):
        read_texts(npz(tmp_path, **arrays))


def test_texts_come_from_an_npz(tmp_path):
    with pytest.raises(InputError, match=r"must end in .npz; got `.csv`"):
        read_texts(csv(tmp_path, "texts\nsnow\n"))
    with pytest.raises(InputError, match="does not exist"):
        read_texts(tmp_path / "nothing.npz")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(InputError, match="damaged or not what its name says"):
        read_texts(tmp_path / "broken.npz")


@pytest.mark.parametrize("name", ["labels", "predictions", "groups", "ids"])
def test_an_empty_cell_of_a_csv_is_a_missing_value(tmp_path, name):
    path = tmp_path / "x.csv"
    path.write_text(f'losses,{name}\n1.0,a\n2.0,""\n3.0,b\n')
    with pytest.raises(InputError, match=f"`{name}` has a missing value in `x.csv`, first at row 1"):
        read(path)


def test_files_know_all_columns(tmp_path):
    columns = {"losses": [1.0, 2.0], "age": [3, 4], "site": ["a", "b"]}
    assert list(read(parquet(tmp_path, columns), metadata=["all"]).metadata) == ["age", "site"]
    assert list(read(csv(tmp_path, "losses,age,site\n1.0,3,a\n2.0,4,b\n"), metadata=["all"]).metadata) == [
        "age",
        "site",
    ]
    arrays = npz(tmp_path, **{name: np.array(values) for name, values in columns.items()})
    assert list(read(arrays, metadata=["all"]).metadata) == ["age", "site"]
    with pytest.raises(InputError, match="age"):
        read(arrays)


def test_a_table_of_columns_alone_can_be_read_to_apply_rules_to_it(tmp_path):
    rows = read(csv(tmp_path, "age,site\n3,a\n4,b\n"), metadata=["all"])
    assert len(rows) == 2
    assert list(rows.metadata) == ["age", "site"]
    with pytest.raises(InputError, match="no column that is known"):
        read(csv(tmp_path, "age,site\n3,a\n4,b\n"))
