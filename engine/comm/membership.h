#pragma once
// The place of a process in a run, as the environment of its launcher says. Besides those of
// paddle-launch it knows the variables of torchrun, Open MPI, PMI (MPICH and derivatives), Slurm,
// PaddlePaddle's launcher and indexed jobs of Kubernetes. Under these rank 0 opens the rendezvous
// itself.

#include <string>

namespace paddle::comm {

struct Membership {
  int rank = 0, size = 1;
  std::string rendezvous = {};  ///< host:port
  std::string token = {};       ///< the shared secret that ranks exchange first
  std::string source = {};      ///< what started the process: "torchrun"; "" for paddle-launch
  int local_size = 1;           ///< ranks of the run on this machine, which share its cores
  int attempt = 0;              ///< how often the launcher has restarted the run
};

/// The environment's membership; size 1 if there is none. kUsage if it makes no sense.
Membership membership_from_environment();

/// The first host of Slurm's list: "n07" of "n[07-12,15],m1". "" for a malformed list.
std::string first_host(const std::string& list);

}  // namespace paddle::comm
