#!/usr/bin/env python3
"""Puts Nsight Compute's figures of `gpubench -once` beside the list of dispatches that it printed: counts.py LOG. With --peer the log is of another program,
whose launches are listed by kernel and grid."""
import collections
import csv
import statistics
import sys


def number(text):
    return float(text.replace(",", ""))


SCALE = {"ns": 1e-3, "us": 1, "byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1, "inst": 1}


def peer(log):
    with open(log, encoding="utf-8", errors="replace") as f:
        table = list(csv.reader(line for line in f if line.startswith('"')))
    column, unit = {name: i for i, name in enumerate(table[0])}, dict(zip(table[0], table[1]))
    groups = collections.defaultdict(list)
    for row in table[2:]:
        def value(name):
            return number(row[column[name]]) * SCALE.get(unit[name], 1)
        groups[row[column["Kernel Name"]].split("(")[0][:60], row[column["Grid Size"]], row[column["Block Size"]]].append((value("gpu__time_duration.sum"), value("dram__bytes_read.sum")))
    print("| kernel | grid | block | launches | us alone, median | MB read |\n|---|---|---|---:|---:|---:|")
    for (name, grid, block), got in groups.items():
        print(f"| {name} | {grid} | {block} | {len(got)} | {statistics.median(t for t, _ in got):.2f} | {statistics.median(b for _, b in got):.3f} |")


def main():
    if sys.argv[1] == "--peer":
        peer(sys.argv[2])
        return
    dispatches, rows = [], []
    with open(sys.argv[1], encoding="utf-8") as f:
        for line in f:
            if line.startswith("once\t"):
                dispatches.append(line.rstrip("\n").split("\t")[2:])
            elif line.startswith('"'):
                rows.append(line)
    table = list(csv.reader(rows))
    if len(table) < 3 or len(table) - 2 != len(dispatches):
        sys.exit(f"counts: got {len(table) - 2} profiled launches and {len(dispatches)} dispatches")
    column = {name: i for i, name in enumerate(table[0])}
    unit = dict(zip(table[0], table[1]))
    seen = set()
    print("| dispatch | kernel | weights | lane instructions a weight | us alone | MB read |\n|---|---|---:|---:|---:|---:|")
    for (role, kernel, weights), row in zip(dispatches, table[2:]):
        if role in seen:
            continue
        seen.add(role)

        def value(name):
            return number(row[column[name]]) * SCALE.get(unit[name], 1)
        each = f"{value('smsp__thread_inst_executed.sum') / int(weights):.2f}" if int(weights) else ""
        print(f"| {role} | {kernel} | {int(weights) or ''} | {each} | {value('gpu__time_duration.sum'):.2f} | {value('dram__bytes_read.sum'):.3f} |")


if __name__ == "__main__":
    main()
