#pragma once
// Requests to stop (SIGINT, SIGTERM) as a flag that long work reads between steps. A second signal
// ends the process at once.

namespace paddle {

/// Installs the handlers; without it signals keep their default disposition.
void watch_for_interrupts();
/// The signal that asked to stop, or 0.
int pending_interrupt();
/// Asks to stop as the signal would.
void request_interrupt(int signal);
/// Forgets the signal: what it asked to stop has stopped.
void clear_interrupt();

}  // namespace paddle
