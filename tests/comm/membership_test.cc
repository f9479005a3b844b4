// The place of a process in a run, from the variables of several launchers.

#include "comm/membership.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/error.h"

namespace paddle::comm {
namespace {

/// Variables that are set for a scope.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables)
      : variables_(variables) {
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::string> variables_;
};

Membership membership(const std::map<std::string, std::string>& variables) {
  const Environment environment(variables);
  return membership_from_environment();
}

std::string rejection(const std::map<std::string, std::string>& variables) {
  const Environment environment(variables);
  try {
    membership_from_environment();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.message();
  }
  return "none";
}

TEST(Membership, OfPaddleLaunch) {
  EXPECT_EQ(membership({}).size, 1);
  const std::map<std::string, std::string> variables = {{"PADDLE_WORLD_SIZE", "4"},
                                                        {"PADDLE_RANK", "3"},
                                                        {"PADDLE_LOCAL_WORLD_SIZE", "2"},
                                                        {"PADDLE_RENDEZVOUS", "127.0.0.1:9"},
                                                        {"PADDLE_RESTART", "1"}};
  const Membership m = membership(variables);
  EXPECT_EQ(m.rank, 3);
  EXPECT_EQ(m.size, 4);
  EXPECT_EQ(m.local_size, 2);
  EXPECT_EQ(m.attempt, 1);
  EXPECT_EQ(m.source, "");
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"PADDLE_RANK", "4"}, {"PADDLE_RANK", "one"}, {"PADDLE_RENDEZVOUS", "nowhere"}}) {
    auto wrong = variables;
    wrong[name] = value;
    EXPECT_NE(rejection(wrong), "none") << name << " " << value;
  }
}

TEST(Membership, OfTorchrun) {
  std::map<std::string, std::string> variables = {{"RANK", "1"},
                                                  {"WORLD_SIZE", "2"},
                                                  {"LOCAL_WORLD_SIZE", "1"},
                                                  {"MASTER_ADDR", "10.0.0.1"},
                                                  {"MASTER_PORT", "29500"}};
  EXPECT_EQ(membership(variables).rendezvous, "10.0.0.1:29500");
  EXPECT_EQ(membership(variables).local_size, 1);
  // torchrun itself listens on the port.
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  variables["TORCHELASTIC_RUN_ID"] = "none";
  const Membership m = membership(variables);
  EXPECT_EQ(m.source, "torchrun");
  EXPECT_EQ(m.token, "none");
  EXPECT_TRUE(m.rendezvous.starts_with("10.0.0.1:2")) << m.rendezvous;
  EXPECT_NE(m.rendezvous, "10.0.0.1:29500");
  variables.erase("MASTER_PORT");
  EXPECT_NE(rejection(variables).find("MASTER_ADDR and MASTER_PORT"), std::string::npos);
}

TEST(Membership, OfOpenMpi) {
  std::map<std::string, std::string> variables = {{"OMPI_COMM_WORLD_RANK", "0"},
                                                  {"OMPI_COMM_WORLD_SIZE", "2"},
                                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                                  {"PMIX_NAMESPACE", "1234.1"}};
  const Membership first = membership(variables);
  variables["OMPI_COMM_WORLD_RANK"] = "1";
  const Membership second = membership(variables);
  EXPECT_EQ(first.rendezvous, second.rendezvous);
  EXPECT_EQ(first.token, second.token);
  EXPECT_TRUE(first.rendezvous.starts_with("127.0.0.1:")) << first.rendezvous;
  variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  EXPECT_NE(rejection(variables).find("several machines; set PADDLE_RENDEZVOUS"),
            std::string::npos);
  variables["PADDLE_RENDEZVOUS"] = "node7:4000";
  EXPECT_EQ(membership(variables).rendezvous, "node7:4000");
}

TEST(Membership, OfOthers) {
  const Membership slurm = membership({{"SLURM_PROCID", "5"},
                                       {"SLURM_STEP_NUM_TASKS", "8"},
                                       {"SLURM_JOB_ID", "77"},
                                       {"SLURM_STEP_ID", "0"},
                                       {"SLURM_STEP_NODELIST", "n[07-10],m1"}});
  EXPECT_EQ(slurm.rank, 5);
  EXPECT_TRUE(slurm.rendezvous.starts_with("n07:")) << slurm.rendezvous;
  // Variables of a batch script, which runs no step.
  EXPECT_EQ(membership({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).size, 1);
  const Membership mpi =
      membership({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(mpi.rank, 1);
  const Membership pod = membership({{"JOB_COMPLETION_INDEX", "2"},
                                     {"WORLD_SIZE", "3"},
                                     {"MASTER_ADDR", "job-0.job"},
                                     {"MASTER_PORT", "4000"}});
  EXPECT_EQ(pod.rank, 2);
  EXPECT_EQ(pod.rendezvous, "job-0.job:4000");
  const Membership trainer = membership({{"PADDLE_TRAINER_ID", "1"},
                                         {"PADDLE_TRAINERS_NUM", "2"},
                                         {"PADDLE_TRAINER_ENDPOINTS", "h1:6170,h2:6170"}});
  EXPECT_EQ(trainer.rendezvous, "h1:6170");
}

TEST(Membership, FirstHosts) {
  EXPECT_EQ(first_host("n1"), "n1");
  EXPECT_EQ(first_host("n1,n2"), "n1");
  EXPECT_EQ(first_host("n[07-12,15],m1"), "n07");
  EXPECT_EQ(first_host("n[3,5]-ib,m1"), "n3-ib");
  EXPECT_EQ(first_host("m1,n[3,5]"), "m1");
  EXPECT_EQ(first_host("n[3"), "");
  EXPECT_EQ(first_host(""), "");
}

}  // namespace
}  // namespace paddle::comm
