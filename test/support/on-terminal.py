# A command on a terminal of its own, for tests: stdin's lines are orders, stdout is what the terminal shows.
# Orders, JSON: {"keys": "..."} types, {"size": [columns, rows]} resizes, {"signal": 15} sends a signal to the command.
# At the end: a last line `\nEXIT <code> <cooked 1 or 0>\n`, whether the terminal's own mode is back.
import fcntl, json, os, pty, select, signal, struct, sys, termios

def size(fd, columns, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

leader, follower = pty.openpty()
size(leader, 120, 20)
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
    for fd in (0, 1, 2):
        os.dup2(follower, fd)
    os.close(leader)
    os.execvp(sys.argv[1], sys.argv[1:])
orders = b''
watched = [leader, 0]
code = None
while code is None:
    ready, _, _ = select.select(watched, [], [], 0.1)
    if leader in ready:
        data = os.read(leader, 65536)
        os.write(1, data)
    if 0 in ready:
        more = os.read(0, 65536)
        if more == b'':
            watched.remove(0)
        orders += more
        while b'\n' in orders:
            line, orders = orders.split(b'\n', 1)
            order = json.loads(line)
            if 'keys' in order:
                os.write(leader, order['keys'].encode())
            if 'size' in order:
                size(leader, *order['size'])
                os.kill(child, signal.SIGWINCH)
            if 'signal' in order:
                os.kill(child, order['signal'])
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid == child:
        code = os.waitstatus_to_exitcode(status)
while select.select([leader], [], [], 0.2)[0]:
    data = os.read(leader, 65536)
    if data == b'':
        break
    os.write(1, data)
mode = termios.tcgetattr(follower)[3]
cooked = int(bool(mode & termios.ICANON) and bool(mode & termios.ECHO))
os.write(1, ('\nEXIT %d %d\n' % (code, cooked)).encode())
