#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes a text file as a C string constant: embed-text.py INPUT OUTPUT SYMBOL."""
import sys


def main():
    source, target, symbol = sys.argv[1:]
    with open(source, encoding="ascii") as file:
        lines = file.read().splitlines()
    with open(target, "w", encoding="ascii") as file:
        file.write(f"extern const char {symbol}[];\nconst char {symbol}[] =\n")
        for line in lines:
            text = line.replace("\\", "\\\\").replace('"', '\\"')
            file.write(f'\t"{text}\\n"\n')
        file.write(";\n")


main()
