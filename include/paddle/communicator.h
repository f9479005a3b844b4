#pragma once
// Communicator: the ranks of a run, which exchange arrays.
//
//   paddle::Communicator run = paddle::Communicator::join();   // `paddle launch -n 4 ./program`
//   paddle::Array sum = run.all_reduce(paddle::Array::scalar(float(run.rank())));
//
// All ranks of a group must call the same functions in the same order; ranks that call others end
// with an InternalError, and a rank that is lost is a PeerError of those that wait for it. A
// Communicator belongs to one thread at a time.

#include <cstdint>
#include <memory>
#include <vector>

#include "paddle/array.h"
#include "paddle/config.h"

namespace paddle::v0 {

/// How elements of several ranks become one. Complex numbers have only the sum.
enum class Reduction : int { kSum = 0, kMax = 1, kMin = 2 };

class PADDLE_API Communicator {
 public:
  /// Joins the run that the environment describes, as paddle launch, torchrun, mpirun or srun set
  /// it, and waits for its other ranks. One rank without such an environment. UsageError for a
  /// contradictory one, PeerError if ranks do not come.
  static Communicator join();
  ~Communicator();
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;

  int rank() const noexcept;
  int size() const noexcept;

  // Groups are ranks in ascending order, among them this one; none: all ranks. UsageError for
  // others.

  void barrier();
  /// The reduction of the arrays of all ranks, which have one dtype and shape.
  Array all_reduce(const Array& x, Reduction reduction = Reduction::kSum,
                   const std::vector<int>& group = {});
  /// The array of the rank `root`; the others give one of the same dtype and shape.
  Array broadcast(const Array& x, int root = 0, const std::vector<int>& group = {});
  /// The arrays of all ranks, along a new first axis.
  Array all_gather(const Array& x, const std::vector<int>& group = {});
  /// This rank's part of the reduction: one of equal parts of the first axis.
  Array reduce_scatter(const Array& x, Reduction reduction = Reduction::kSum,
                       const std::vector<int>& group = {});
  /// Sends the i-th of equal parts of the first axis to the i-th rank; what comes, in the order of
  /// ranks.
  Array all_to_all(const Array& x, const std::vector<int>& group = {});
  /// Sends an array to another rank and returns at once.
  void send(const Array& x, int to, int tag = 0);
  /// The array of this dtype and shape that a rank has sent with the tag. Those of one tag arrive
  /// in the order of sending.
  Array recv(DType dtype, const std::vector<int64_t>& shape, int from, int tag = 0);

 private:
  struct Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace paddle::v0
