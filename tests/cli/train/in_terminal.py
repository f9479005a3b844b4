"""in_terminal.py COLUMNS COMMAND...: runs a command whose standard error is a terminal of that width;
prints the status and what the terminal got, with times, as JSON."""
import fcntl, json, os, pty, struct, subprocess, sys, termios, time

columns, command = int(sys.argv[1]), sys.argv[2:]
terminal, other_end = pty.openpty()
fcntl.ioctl(other_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=other_end)
os.close(other_end)
written, begun = [], time.monotonic()
while True:
    try:
        part = os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        break
    if not part:
        break
    written.append([time.monotonic() - begun, part.decode("utf-8", "replace")])
print(json.dumps({"status": process.wait(), "written": written}))
