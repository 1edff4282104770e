"""The figures of compare_gpu.py as a table for documents."""


def size_text(size_bytes):
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if size_bytes >= unit and size_bytes % unit == 0:
            return f"{size_bytes // unit}{name}"
    return str(size_bytes) if size_bytes else "-"


def table(rows):
    lines = ["| case | size | unit | program | median | min to max | ratio (above 1: ours is better) |",
             "| --- | ---: | --- | --- | ---: | --- | --- |"]
    for row in rows:
        for name, figure in row["programs"].items():
            ratios = ", ".join(f"{ratio:.2f} ({peer.split(' / ')[1]})" for peer, ratio in row["better_than"].items()
                               if peer.startswith(name + " / "))
            lines.append(f"| {row['case']} | {size_text(row['size_bytes'])} | {row['unit']} | {name} | "
                         f"{figure['median']:.4g} | {figure['min']:.4g} to {figure['max']:.4g} | {ratios or '-'} |")
    return "\n".join(lines)
