"""The experiments' part of the report: a section each, with its plots, and what is missing."""
from experiments import ALL
from experiments.found import write_csv, write_curves
from plots import draw
from report import NOT_MEASURED, ROUNDS_MIN

REASONS_SHOWN_MAX = 12
REASON_LENGTH_MAX = 300


def markdown(found, chosen):
    """`chosen`: names of the experiments that were asked for."""
    parts = ["## Experiments"]
    for experiment in ALL:
        parts += [f"### {experiment.title}", *section(found, experiment, experiment.name in chosen)]
    return "\n\n".join(parts)


def section(found, experiment, asked):
    name = experiment.name
    if not found.systems(name):
        why = found.left_out.get(name) or (
            "no system could take part" if asked else f"not a part of this run; `bench/run --only {name}` measures it")
        return [f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}: {why}.", *remarks(found, experiment)]
    parts = [experiment.about, experiment.section(found)]
    parts += [f"![{caption}](plots/{file_name})\n\n*{caption}*" for file_name, caption in found.plots.get(name, [])]
    return parts + remarks(found, experiment)


def remarks(found, experiment):
    """What is missing, as one list; no list if there is nothing to say."""
    name = experiment.name
    lines = [f"{system} takes no part: {why}" for (of, system), why in found.not_offered.items() if of == name]
    reasons = {}
    for one in found.failures:
        if one.experiment == name:
            reasons.setdefault((one.system, one.reason), []).append(one)
    for (system, reason), ones in list(reasons.items())[:REASONS_SHOWN_MAX]:
        where = sorted({" ".join(map(str, one.setting)) for one in ones if one.setting})
        times = "once" if len(ones) == 1 else f"{len(ones)} times"
        lines.append(f"{system} failed {times}{' at ' + ', '.join(where) if where else ''}: {in_one_line(reason)}")
    if len(reasons) > REASONS_SHOWN_MAX:
        lines.append(f"and {len(reasons) - REASONS_SHOWN_MAX} more failures: the CSV file has all")
    if name in found.left_out and found.systems(name):
        lines.append(f"cut short: {found.left_out[name]}")
    if 0 < found.rounds(name) < ROUNDS_MIN:
        lines.append(f"some of it has fewer than {ROUNDS_MIN} rounds ({found.rounds(name)}): no more than a trial")
    return ["\n".join(f"- {line}" for line in lines)] if lines else []


def in_one_line(reason):
    words = " ".join(reason.split())
    return words if len(words) <= REASON_LENGTH_MAX else f"{words[:REASON_LENGTH_MAX]} …"


def draw_plots(found, folder, chosen):
    """Draws what there is to draw; why not, or None. Plots of what was not measured are left as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    every = {experiment.name: experiment.plots(found, folder) for experiment in ALL if experiment.name in chosen}
    reason = draw([plot for made in every.values() for plot, _ in made])
    if reason is None:
        found.plots = {name: [(plot.path.name, caption) for plot, caption in made] for name, made in every.items()}
    return reason


def write_files(found, folder, chosen):
    """All single figures: a CSV file for each experiment that was asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    for experiment in (experiment for experiment in ALL if experiment.name in chosen):
        write_csv(found, experiment, folder / f"{experiment.name}.csv")
        if any(name == experiment.name for name, *_ in found.curves):
            write_curves(found, experiment, folder / f"{experiment.name}-cdf.csv")
