#include "comm/membership.h"

#include <unistd.h>

#include <algorithm>
#include <initializer_list>

#include "base/environment.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "comm/sockets.h"

namespace paddle::comm {
namespace {

bool has(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (environment(name).empty()) return false;
  return true;
}

int number(const char* name, int least) {
  const std::string value = environment(name);
  const std::optional<int64_t> number = parse_integer(value);
  if (!number || *number < least || *number > kMaxRanks)
    fail(ErrorCode::kUsage, name, ": expected a number from ", least, " to ", kMaxRanks,
         ", found '", value, "'");
  return static_cast<int>(*number);
}

Membership placed(const char* rank, const char* size, const std::string& source) {
  Membership m;
  m.source = source;
  m.size = number(size, 1);
  m.rank = number(rank, 0);
  if (m.rank >= m.size)
    fail(ErrorCode::kUsage, rank, " is ", m.rank, ", ", size, " ", m.size, ": ranks count from 0");
  return m;
}

/// A port below those that systems give to outgoing connections, the same for all ranks of a job.
int port_of_job(const std::string& job) {
  constexpr uint32_t kFirst = 20000, kCount = 10000;
  return static_cast<int>(kFirst + crc32(std::as_bytes(std::span(job))) % kCount);
}

/// PADDLE_RENDEZVOUS or MASTER_ADDR and MASTER_PORT; "" without either.
std::string stated_rendezvous() {
  if (const std::string address = environment("PADDLE_RENDEZVOUS"); !address.empty())
    return address;
  if (!has({"MASTER_ADDR", "MASTER_PORT"})) return "";
  return environment("MASTER_ADDR") + ":" + environment("MASTER_PORT");
}

/// The rendezvous of a job whose manager sets no address: a port of `host` that is a hash of
/// the job's name. `host` is "" where it is not known.
void set_rendezvous(Membership& m, const std::string& job, const std::string& host) {
  m.rendezvous = stated_rendezvous();
  if (m.rendezvous.empty() && host.empty() && m.size > 1)
    fail(ErrorCode::kUsage, "rank ", m.rank, " of ", m.size, " (", m.source,
         "): the ranks are on several machines; set PADDLE_RENDEZVOUS to host:port of rank 0");
  if (m.rendezvous.empty()) m.rendezvous = str(host, ":", port_of_job(job));
  m.token = job;
}

Membership under_torchrun(const char* rank, const std::string& source) {
  Membership m = placed(rank, "WORLD_SIZE", source);
  m.rendezvous = stated_rendezvous();
  const bool stated = has({"PADDLE_RENDEZVOUS"});
  if (m.rendezvous.empty() && m.size > 1)
    fail(ErrorCode::kUsage, rank,
         " and WORLD_SIZE are set; MASTER_ADDR and MASTER_PORT, where "
         "rank 0 listens, are not");
  // torchrun keeps a store of its own on the port.
  if (environment("TORCHELASTIC_USE_AGENT_STORE") == "True" && !stated && m.size > 1) {
    const Address address = parse_address(m.rendezvous, "MASTER_PORT");
    m.rendezvous = str(address.host, ":", port_of_job(m.rendezvous));
  }
  m.token = environment("TORCHELASTIC_RUN_ID");
  return m;
}

Membership under_open_mpi() {
  Membership m = placed("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI");
  std::string job;
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
    if (job.empty()) job = environment(name);
  const bool one_machine = environment("OMPI_COMM_WORLD_LOCAL_SIZE") == str(m.size);
  set_rendezvous(m, str(job, " ", ::getuid()), one_machine ? "127.0.0.1" : "");
  return m;
}

Membership under_pmi() {
  Membership m = placed("PMI_RANK", "PMI_SIZE", "MPI");
  // The process that starts the ranks of a machine is the parent of all of them.
  const bool one_machine = environment("MPI_LOCALNRANKS") == str(m.size);
  set_rendezvous(m, str(::getppid(), " ", ::getuid()), one_machine ? "127.0.0.1" : "");
  return m;
}

Membership under_slurm() {
  Membership m = placed("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "Slurm");
  set_rendezvous(m, environment("SLURM_JOB_ID") + "." + environment("SLURM_STEP_ID"),
                 first_host(environment("SLURM_STEP_NODELIST")));
  return m;
}

Membership under_paddlepaddle() {
  Membership m = placed("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "PaddlePaddle's launcher");
  m.rendezvous = environment("PADDLE_MASTER");
  if (m.rendezvous.empty()) m.rendezvous = split(environment("PADDLE_TRAINER_ENDPOINTS"), ',')[0];
  if (m.rendezvous.empty() && m.size > 1)
    fail(ErrorCode::kUsage, "PADDLE_TRAINERS_NUM is ", m.size,
         "; PADDLE_MASTER or PADDLE_TRAINER_ENDPOINTS, where rank 0 listens, is not set");
  return m;
}

/// Ranks on this machine; without a variable that says it, all of them.
int local_size(int size) {
  for (const char* name :
       {"PADDLE_LOCAL_WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
        "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"})
    if (has({name})) return std::min(size, number(name, 1));
  return size;
}

}  // namespace

std::string first_host(const std::string& list) {
  const size_t open = list.find('[');
  if (open == std::string::npos || list.find(',') < open) return split(list, ',')[0];
  const size_t end = list.find_first_of("-,]", open);
  if (end == std::string::npos) return "";
  const size_t close = list.find(']', open), next = list.find(',', close);
  if (close == std::string::npos) return "";
  const std::string rest =
      list.substr(close + 1, next == std::string::npos ? next : next - close - 1);
  return list.substr(0, open) + list.substr(open + 1, end - open - 1) + rest;
}

Membership membership_from_environment() {
  Membership m;
  if (has({"PADDLE_WORLD_SIZE"})) {
    m = placed("PADDLE_RANK", "PADDLE_WORLD_SIZE", "");
    m.rendezvous = environment("PADDLE_RENDEZVOUS");
    if (has({"PADDLE_RESTART"})) m.attempt = number("PADDLE_RESTART", 0);
  } else if (has({"PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"})) {
    m = under_paddlepaddle();
  } else if (has({"RANK", "WORLD_SIZE"})) {
    m = under_torchrun("RANK", has({"TORCHELASTIC_RUN_ID"}) ? "torchrun" : "RANK, WORLD_SIZE");
  } else if (has({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"})) {
    m = under_open_mpi();
  } else if (has({"PMI_RANK", "PMI_SIZE"})) {
    m = under_pmi();
  } else if (has({"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"})) {
    m = under_slurm();
  } else if (has({"JOB_COMPLETION_INDEX", "WORLD_SIZE"})) {
    m = under_torchrun("JOB_COMPLETION_INDEX", "an indexed job");
  }
  if (m.size == 1) return {.attempt = m.attempt};
  m.local_size = local_size(m.size);
  parse_address(m.rendezvous, "PADDLE_RENDEZVOUS");
  if (has({"PADDLE_RENDEZVOUS_TOKEN"})) m.token = environment("PADDLE_RENDEZVOUS_TOKEN");
  // One word, as it is sent in a line.
  for (char& c : m.token)
    if (c == ' ' || c == '\n') c = '_';
  if (m.token.empty()) m.token = "run";
  return m;
}

}  // namespace paddle::comm
