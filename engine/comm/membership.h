#pragma once
// The place of a process in a run, as the environment of its launcher says. Besides paddle-launch
// the variables of torchrun, Open MPI, MPICH and its kin (PMI), Slurm, PaddlePaddle's launcher and
// indexed jobs of Kubernetes are known. Under these rank 0 opens the rendezvous itself.

#include <string>

namespace paddle::comm {

struct Membership {
  int rank = 0, size = 1;
  std::string rendezvous = {};  ///< host:port
  std::string token = {};       ///< what the ranks of the run say to each other first
  std::string source = {};      ///< who started the process: "torchrun"; "" for paddle-launch
  int local_size = 1;           ///< ranks of the run on this machine, who share its cores
  int attempt = 0;              ///< how often the launcher has restarted the run
};

/// The environment's membership; size 1 if there is none. kUsage if it makes no sense.
Membership membership_from_environment();

/// The first host of Slurm's list: "n07" of "n[07-12,15],m1". "" for a list that is none.
std::string first_host(const std::string& list);

}  // namespace paddle::comm
