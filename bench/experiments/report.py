"""An experiment's part of the report, with its plots, and what is missing."""
from statistics import median

from experiments.found import write_csv, write_curves
from plots import draw, shown
from report import NOT_MEASURED, OTHERS_PERCENT_MAX, REASONS_SHOWN_MAX, ROUNDS_MIN, in_one_line


def section(found, experiment, facts):
    """An experiment's part of the report."""
    name = experiment.name
    if not found.systems(name):
        why = found.left_out.get(name) or "no system could take part"
        parts = [f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}: {why}."]
    else:
        parts = [experiment.about, f"Measured: {facts}.", experiment.section(found)]
        parts += [shown(file_name, caption) for file_name, caption in found.plots.get(name, [])]
    return "\n\n".join(parts + remarks(found, experiment))


def remarks(found, experiment):
    """What is missing, as one list; no list if there is nothing to say."""
    name = experiment.name
    absent, reasons = {}, {}
    for (of, system), why in found.not_offered.items():
        if of == name:
            absent.setdefault(why, []).append(system)
    lines = [f"{'; '.join(systems)} {'takes' if len(systems) == 1 else 'take'} no part: {why}" for why, systems in absent.items()]
    lines += [f"{system} takes part with {part}" for (of, system), part in found.partly.items() if of == name]
    for one in found.failures:
        if one.experiment == name:
            reasons.setdefault((one.system, one.reason), []).append(one)
    for (system, reason), ones in list(reasons.items())[:REASONS_SHOWN_MAX]:
        where = sorted({" ".join(map(str, one.setting)) for one in ones if one.setting})
        times = "once" if len(ones) == 1 else f"{len(ones)} times"
        lines.append(f"{system} failed {times}{' at ' + ', '.join(where) if where else ''}: {in_one_line(reason)}")
    if len(reasons) > REASONS_SHOWN_MAX:
        lines.append(f"and {len(reasons) - REASONS_SHOWN_MAX} more failures: the CSV file has all")
    others = [point.figures["others_percent"] for point in found.points if point.experiment == name and "others_percent" in point.figures]
    if others:
        lines.append(f"used by others of the machine, of all its measurements: median {median(others):.1f} %, at most {max(others):.0f} %; "
                     f"{sum(share > OTHERS_PERCENT_MAX for share in others)} of {len(others)} with more than {OTHERS_PERCENT_MAX} %")
    if name in found.left_out and found.systems(name):
        lines.append(f"cut short: {found.left_out[name]}")
    if 0 < found.rounds(name) < ROUNDS_MIN:
        lines.append(f"some of it has fewer than {ROUNDS_MIN} rounds ({found.rounds(name)}): no more than a trial")
    if name in found.not_drawn:
        lines.append(f"no plots were drawn: {found.not_drawn[name]}")
    return ["\n".join(f"- {line}" for line in lines)] if lines else []


def draw_plots(found, experiment, folder):
    """Draws what there is to draw, and notes its captions, or why nothing was drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    made = experiment.plots(found, folder)
    reason = draw([plot for plot, _ in made])
    if reason is None:
        found.plots[experiment.name] = [(plot.path.name, caption) for plot, caption in made]
    else:
        found.not_drawn[experiment.name] = reason


def write_files(found, experiment, folder):
    """All single figures: a CSV file, and another one for curves."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(found, experiment, folder / f"{experiment.name}.csv")
    if any(name == experiment.name for name, *_ in found.curves):
        write_curves(found, experiment, folder / f"{experiment.name}-cdf.csv")
