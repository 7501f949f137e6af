"""The small dataset that tests of code read: its tables and its paper are made again from it."""

import nbformat
from conftest import MINIATURE, ROOT

from deathmatch.analysis import phrases
from deathmatch.data import archive, inventory, tables, tidy
from deathmatch.paper.display import MIME
from deathmatch.plan import files


def test_its_tables_are_made_again_from_its_raw_logs(tmp_path, miniature):
    for packed in MINIATURE.glob(f"*/{archive.NAME}"):
        experiment = packed.parent.name
        archive.unpack(packed, tmp_path / experiment)
        made = tidy.frames(experiment, inventory.recorded(tmp_path, experiment))
        for table in files.dataset(miniature).tables(experiment):
            key = ["server", "variant", "n"]
            kept = tables.read(miniature, experiment, table)
            kept = kept.join(made[table], on=key, how="semi", maintain_order="left")
            assert len(kept) or table not in ("trials", "points"), (experiment, table)
            assert kept.equals(made[table]), (experiment, table)


def test_its_paper_has_every_part(written):
    """The paper of a whole dataset has every figure, table and number."""
    made = sorted((written / "paper" / MINIATURE.name / "notebooks").glob("*.ipynb"))
    notebooks = sorted(path.stem for path in (ROOT / "notebooks").glob("*.md"))
    assert [path.stem for path in made] == notebooks
    kinds = set()
    for path in made:
        for cell in nbformat.read(path, 4).cells:
            for output in cell.get("outputs", []):
                shown = output.get("data", {}).get(MIME, {})
                kinds.add(shown.get("kind"))
    assert {"figure", "table", "values"} <= kinds and "absent" not in kinds
    page = (written / "paper" / MINIATURE.name / "deathmatch.html").read_text()
    assert all(f'id="tbl-appendix-{name}"' in page for name in ("sittings", "drift"))
    assert phrases.NOT_MEASURED not in page and str(written) not in page
    assert (written / "paper" / MINIATURE.name / "explore.html").is_file()
