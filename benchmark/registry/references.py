"""Whether the entries of the registry name each other rightly."""

from collections.abc import Callable, Collection
from math import prod

from benchmark.declarations import Search, Table
from benchmark.declarations.figures import AnyFigure, ConfidenceFigure, F1AgainstEceFigure
from benchmark.errors import UserError, nearest
from benchmark.registry.candidates import MOST_CANDIDATES, candidates, known_settings, owner_and_setting, with_settings
from benchmark.registry.cells import clean_columns
from benchmark.registry.contents import Registry, row_key
from benchmark.registry.yaml_files import Key
from benchmark.specs import Head, LinearHead, LossTerm, MixupTerm, PoscalTerm, joins_at_once, term_name

# A table's file bears its name, in a folder that has these, too, and "search_NAME" of every search.
_OTHER_FILES = ("claims", "ranking", "recommendation", "report", "scores", "tables")

# File name without ending and path of keys, to ``file:line: key``.
Place = Callable[[str, tuple[Key, ...]], str]


def is_reserved(table: str) -> bool:
    """Whether a table cannot have that name: another file beside the tables bears it, or it stands for all of them."""
    return table in (*_OTHER_FILES, "all") or table.startswith("search_")


def wrong_references(registry: Registry, place: Place) -> list[str]:
    """One sentence for each name that stands for nothing, with the place and the nearest valid name."""
    check = References(place)
    _check_methods(registry, check)
    _check_tables(registry, check)
    _check_figures(registry, check)
    _check_profiles(registry, check)
    _check_searches(registry, check)
    _check_paper(registry, check)
    _check_claims(registry, check)
    return check.mistakes


class References:
    """Collects the mistakes in how entries name each other."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.mistakes: list[str] = []

    def named(self, file: str, at: tuple[Key, ...], name: str, known: Collection[str], what: str) -> bool:
        """Whether ``name`` is among ``known``; if not, a mistake is noted at that place."""
        if name in known:
            return True
        self.note(file, at, f'there is no {what} "{name}"; {nearest(name, known)}')
        return False

    def note(self, file: str, at: tuple[Key, ...], sentence: str) -> None:
        ending = "" if sentence.endswith(("?", ".")) else "."
        self.mistakes.append(f"{self.place(file, at)}: {sentence}{ending}")


def _check_methods(registry: Registry, check: References) -> None:
    parts = registry.methods
    for name, term in parts.losses.items():
        if isinstance(term, PoscalTerm) and "divergence" not in term.model_fields_set:
            both = "forward, as in the method's published code, or reverse"
            check.note("methods", ("losses", name), f"the divergence is not said; write divergence: {both}")
    for name, method in parts.methods.items():
        at = ("methods", name)
        check.named("methods", (*at, "head"), method.head, parts.heads, "head")
        for index, loss in enumerate(method.loss):
            known = check.named("methods", (*at, "loss", index), loss, parts.losses, "loss")
            if known and isinstance(parts.losses[loss], MixupTerm) and method.head in parts.heads:
                _check_mixing_head(parts.heads[method.head], check, (*at, "head"))
        if parts.losses.keys() >= set(method.loss):
            _check_terms([parts.losses[loss] for loss in method.loss], check, (*at, "loss"))
        if method.posthoc is not None:
            check.named("methods", (*at, "posthoc"), method.posthoc, parts.calibrators, "calibrator")


def _check_terms(terms: list[LossTerm], check: References, at: tuple[Key, ...]) -> None:
    """A run learns something from its first step on, and its terms can be told apart in its record."""
    if not any(joins_at_once(term) for term in terms):
        check.note("methods", at, "none of these terms is there from the first step on; add one that is: cross_entropy")
    names = [term_name(term) for term in terms]
    for name in sorted({name for name in names if names.count(name) > 1}):
        check.note(
            "methods", at, f"two of these terms are of the kind {name}, and a result records one of each; keep one"
        )


def _check_mixing_head(head: Head, check: References, at: tuple[Key, ...]) -> None:
    """Mixed logits are those of mixed encoded vectors with a linear head only."""
    if not isinstance(head, LinearHead):
        check.note("methods", at, f"mixup needs a head of the kind linear, not {head.kind}")


def _check_tables(registry: Registry, check: References) -> None:
    roles = {role for profile in registry.profiles.values() for role in profile.encoders}
    for name, table in registry.tables.items():
        if is_reserved(name):
            check.note(
                "tables",
                ("tables", name),
                f"{name} is the name of another file beside the tables, or of all of them; choose another",
            )
        _check_rows(registry, check, name, table, roles)
        _check_columns(registry, check, name, table)


def _check_rows(registry: Registry, check: References, name: str, table: Table, roles: set[str]) -> None:
    """Of known methods and encoders; none stands twice in its group, nor two of the table under one name."""
    methods = registry.methods.methods
    seen: dict[tuple[str, str], str] = {}
    for group, rows in enumerate(table.rows):
        for index, row in enumerate(rows):
            at = ("tables", name, "rows", group, index)
            known = check.named("tables", (*at, "method"), row.method, methods, "method")
            check.named("tables", (*at, "encoder"), row.encoder, roles, "encoder role in any profile")
            if not known:
                continue
            label = row.label or methods[row.method].label
            other = seen.setdefault((row.encoder, label), row.method)
            if other != row.method:
                check.note("tables", at, f'"{label}" is what the row of {other} is called, too; give one another label')
            elif (row.encoder, row.method) in [(one.encoder, one.method) for one in rows[:index]]:
                check.note("tables", at, f"{row.method} is a row of this group already; name it once")


def _check_columns(registry: Registry, check: References, name: str, table: Table) -> None:
    subjects = {dataset for profile in registry.profiles.values() for dataset in profile.datasets}
    averaged = [column.label for column in table.columns if not column.mean_over]
    labels = [column.label for column in table.columns]
    for index, column in enumerate(table.columns):
        at = ("tables", name, "columns", index)
        if column.label in labels[:index]:
            check.note("tables", (*at, "label"), f'the label "{column.label}" is used before; give each column its own')
        for number, metric in enumerate(column.metrics):
            check.named("tables", (*at, "metrics", number), metric, registry.metrics, "metric")
        for metric in column.decimals:
            check.named("tables", (*at, "decimals", metric), metric, column.metrics, "metric in this column")
        if column.dataset is not None:
            check.named("tables", (*at, "dataset"), column.dataset, subjects, "data set in any profile")
        for number, label in enumerate(column.mean_over):
            check.named("tables", (*at, "mean_over", number), label, averaged, "column with that label")


def _check_figures(registry: Registry, check: References) -> None:
    datasets = {dataset for profile in registry.profiles.values() for dataset in profile.datasets}
    roles = {role for profile in registry.profiles.values() for role in profile.encoders}
    files: dict[str, str] = {}  # what is written, without ending, to the figure that writes it
    for name, figure in registry.figures.items():
        at: tuple[Key, ...] = ("figures", name)
        for file in _file_names(name, figure, datasets):
            if files.setdefault(file, name) != name:
                check.note(
                    "figures", at, f'"{files[file]}" writes a file {file}, too; give one of the two another name'
                )
        if isinstance(figure, F1AgainstEceFigure):
            known = check.named("figures", (*at, "table"), figure.table, registry.tables, "table")
            if known and not clean_columns(registry.tables[figure.table], {"f1", "ece"}):
                nothing = f"no column of table {figure.table} has both f1 and ece of a whole data set without noise"
                check.note("figures", (*at, "table"), nothing)
            continue
        if isinstance(figure, ConfidenceFigure):
            check.named("figures", (*at, "method"), figure.method, registry.methods.methods, "method")
        else:
            for index, method in enumerate(figure.methods):
                check.named("figures", (*at, "methods", index), method, registry.methods.methods, "method")
        check.named("figures", (*at, "encoder"), figure.encoder, roles, "encoder role in any profile")
        if figure.dataset is not None:
            check.named("figures", (*at, "dataset"), figure.dataset, datasets, "data set in any profile")


def _file_names(name: str, figure: AnyFigure, datasets: set[str]) -> list[str]:
    if isinstance(figure, F1AgainstEceFigure) or figure.dataset is not None:
        return [name]
    return [f"{name}_{dataset}" for dataset in sorted(datasets)]


def _check_profiles(registry: Registry, check: References) -> None:
    for name, profile in registry.profiles.items():
        at = ("profiles", name)
        for role, dataset in profile.datasets.items():
            check.named("profiles", (*at, "datasets", role), dataset, registry.datasets, "data set")
        if "base" not in profile.encoders:
            check.note("profiles", (*at, "encoders"), 'the role "base" is missing: the encoder of every table but one')
        for role, choice in profile.encoders.items():
            if isinstance(choice, str):
                check.named("profiles", (*at, "encoders", role), choice, registry.encoders, "encoder")
                continue
            for dataset, encoder in choice.items():
                here = (*at, "encoders", role, dataset)
                check.named("profiles", here, encoder, registry.encoders, "encoder")
                check.named("profiles", here, dataset, profile.datasets, "data set in this profile")
        for index, rule in enumerate(profile.training):
            place = (*at, "training", index)
            if rule.dataset is not None:
                check.named("profiles", (*place, "dataset"), rule.dataset, profile.datasets, "data set in this profile")
            if rule.encoder is not None:
                check.named("profiles", (*place, "encoder"), rule.encoder, profile.encoders, "encoder role here")
            if rule.method is not None:
                _check_trained_method(registry, check, "profiles", (*place, "method"), rule.method)


def _check_trained_method(registry: Registry, check: References, file: str, at: tuple[Key, ...], name: str) -> None:
    methods = registry.methods.methods
    if not check.named(file, at, name, methods, "method") or methods[name].posthoc is None:
        return
    own = (methods[name].head, methods[name].loss)
    trained = [
        other for other, method in methods.items() if method.posthoc is None and own == (method.head, method.loss)
    ]
    hint = f"; name {trained[0]} instead" if trained else ""
    check.note(file, at, f"{name} is never trained, it calibrates what another method has trained{hint}")


def _check_searches(registry: Registry, check: References) -> None:
    datasets = {dataset for profile in registry.profiles.values() for dataset in profile.datasets}
    for name, search in registry.searches.items():
        at = ("searches", name)
        before = len(check.mistakes)
        for index, method in enumerate(search.methods):
            _check_trained_method(registry, check, "searches", (*at, "methods", index), method)
        for index, dataset in enumerate(search.datasets):
            check.named("searches", (*at, "datasets", index), dataset, datasets, "data set in any profile")
        for index, metric in enumerate(search.metrics):
            check.named("searches", (*at, "metrics", index), metric, registry.metrics, "metric")
        for index, profile in enumerate(search.profiles):
            check.named("searches", (*at, "profiles", index), profile, registry.profiles, "profile")
        check.named("searches", (*at, "choose_by"), search.choose_by, search.metrics, "metric in this search")
        if search.then_by is not None:
            check.named("searches", (*at, "then_by"), search.then_by, search.metrics, "metric in this search")
            by = registry.metrics.get(search.choose_by)
            # the standard error is accuracy's, which F1's is about
            if search.then_by == search.choose_by or (by and by.score not in ("f1", "accuracy")):
                why = "it needs choose_by to be f1 or accuracy, and another; leave it out"
                check.note("searches", (*at, "then_by"), why)
        if len(check.mistakes) == before:
            _check_axes(registry, check, at, search)


def _check_axes(registry: Registry, check: References, at: tuple[Key, ...], search: Search) -> None:
    before = len(check.mistakes)
    parts = {name: _parts_of(registry, name) for name in search.methods}
    used = set().union(*parts.values())
    taken: set[str] = set()
    for index, axis in enumerate(search.axes):
        for number, name in enumerate(axis.set):
            here = (*at, "axes", index, "set", number)
            owner, setting = owner_and_setting(name)
            if name in taken:
                check.note("searches", here, f"{name} is varied twice; keep one of the two")
            taken.add(name)
            if check.named("searches", here, owner, used, "part of this search's methods"):
                check.named("searches", here, setting, known_settings(registry, owner), f"setting of {owner}")
        for method, own in parts.items():
            if not own & {owner_and_setting(name)[0] for name in axis.set}:
                check.note("searches", (*at, "axes", index, "set"), f"this changes nothing of method {method}")
    size = prod(len(axis.to) for axis in search.axes)
    if size > MOST_CANDIDATES:
        check.note("searches", (*at, "axes"), f"{size:,} candidates are too many; at most {MOST_CANDIDATES:,}")
    if len(check.mistakes) == before:
        _check_values(registry, check, at, search)


def _parts_of(registry: Registry, name: str) -> set[str]:
    method = registry.methods.methods[name]
    return {"training", f"heads.{method.head}", *(f"losses.{loss}" for loss in method.loss)}


def _check_values(registry: Registry, check: References, at: tuple[Key, ...], search: Search) -> None:
    profile = next(iter(search.profiles or registry.profiles))
    try:
        candidates(registry, profile, search)
    except UserError as together:
        place: tuple[Key, ...] = (*at, "axes")
        sentence = str(together)
        for index, axis in enumerate(search.axes):  # the value that is to blame, where one is wrong by itself
            for number, value in enumerate(axis.to):
                try:
                    with_settings(registry, profile, dict.fromkeys(axis.set, value))
                except UserError as alone:
                    place, sentence = (*at, "axes", index, "to", number), str(alone)
        check.note("searches", place, sentence)


def _check_paper(registry: Registry, check: References) -> None:
    for name, rows in registry.paper.items():
        at: tuple[Key, ...] = ("tables", name)
        if not check.named("paper", at, name, registry.tables, "table"):
            continue
        table = registry.tables[name]
        known_rows = [row_key(row.method, row.encoder) for row in table.every_row]
        columns = {column.label: column for column in table.columns}
        for row, cells in rows.items():
            check.named("paper", (*at, row), row, known_rows, f"row in table {name}")
            for label, values in cells.items():
                if check.named("paper", (*at, row, label), label, columns, f"column in table {name}"):
                    for metric in values:
                        here = (*at, row, label, metric)
                        check.named("paper", here, metric, columns[label].metrics, "metric in this column")


def _check_claims(registry: Registry, check: References) -> None:
    for name, claim in registry.claims.items():
        at = ("claims", name)
        if not check.named("claims", (*at, "table"), claim.table, registry.tables, "table"):
            continue
        table = registry.tables[claim.table]
        rows = [row_key(row.method, row.encoder) for row in table.every_row]
        columns = {column.label: column for column in table.columns}
        for index, comparison in enumerate(claim.comparisons):
            here = (*at, "comparisons", index)
            for number, row in enumerate([comparison.row, *comparison.against]):
                place = (*here, "row") if number == 0 else (*here, "against", number - 1)
                check.named("claims", place, row, rows, f"row in table {claim.table}")
            if check.named("claims", (*here, "column"), comparison.column, columns, f"column in table {claim.table}"):
                known = columns[comparison.column].metrics
                check.named("claims", (*here, "metric"), comparison.metric, known, "metric in this column")
