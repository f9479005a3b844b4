"""Sounds for the recipe speech-commands: words that a synthesizer speaks with many voices."""

import os
import random
import subprocess

from files import Missing, write_table

WORDS = ["yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go", "zero", "one", "two",
         "three", "four", "five", "six", "seven", "eight", "nine"]
VOICES = ["adam", "Alex", "Andy", "anika", "antonio", "belinda", "benjamin", "boris", "caleb", "david", "ed",
          "edward", "f1", "f3", "f4", "Gene", "gustave", "Hugo", "iven", "john", "klatt", "linda", "m1",
          "m3", "m4", "m7", "marcelo", "Mario", "max", "michel", "pablo", "paul", "quincy", "rob", "sandro",
          "shelby", "steph", "travis", "victor", "zac"]
HELD_OUT = ["Annie", "f2", "f5", "Lee", "m2", "m5", "Michael", "norbert", "pedro", "robert"]
ACCENTS = ["en-us", "en-gb", "en-gb-scotland"]


def commands(root, folder):
    """Debian espeak-ng: twenty words in 40 voices in commands.csv, in ten others in commands-test.csv."""
    pick = random.Random(1)
    for name, voices in (("commands", VOICES), ("commands-test", HELD_OUT)):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        rows = []
        for word in WORDS:
            for voice in voices:
                for accent in ACCENTS:
                    path = f"{name}/{word}-{voice}-{accent}.wav"
                    speed, pitch = pick.randint(120, 220), pick.randint(25, 75)
                    try:
                        subprocess.run(["espeak-ng", "-v", f"{accent}+{voice}", "-s", str(speed),
                                        "-p", str(pitch), "-w", f"{folder}/{path}", word], check=True)
                    except FileNotFoundError:
                        raise Missing("espeak-ng is missing: apt-get install espeak-ng") from None
                    rows.append([path, word])
        write_table(f"{folder}/{name}.csv", ["clip", "word"], rows)
