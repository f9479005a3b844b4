// libpaddle_mpi.so: see interface.h.

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "comm/mpi/interface.h"

namespace {

/// Whether a call of MPI failed; the reason goes to `message`.
int failed(int status, char* message, size_t message_size) {
  if (status == MPI_SUCCESS) return 0;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  std::snprintf(message, message_size, "%s", text);
  return 1;
}

int error_class(int status) {
  int found = MPI_SUCCESS;
  if (status != MPI_SUCCESS) MPI_Error_class(status, &found);
  return found;
}

/// A type that describes `pieces` where they are, relative to address 0. MPI counts in int, so a
/// piece of more bytes becomes several blocks.
int describe(const paddle_mpi_piece* pieces, size_t count, MPI_Datatype* type) {
  constexpr size_t kBlock = size_t{1} << 30;
  std::vector<int> lengths;
  std::vector<MPI_Aint> places;
  for (size_t i = 0; i < count; ++i)
    for (size_t at = 0; at < pieces[i].bytes; at += kBlock) {
      MPI_Aint place = 0;
      MPI_Get_address(static_cast<char*>(pieces[i].memory) + at, &place);
      places.push_back(place);
      lengths.push_back(static_cast<int>(std::min(kBlock, pieces[i].bytes - at)));
    }
  int status = MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(),
                                        places.data(), MPI_BYTE, type);
  if (status == MPI_SUCCESS) status = MPI_Type_commit(type);
  return status;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int paddle_module_version() { return PADDLE_MPI_VERSION; }

__attribute__((visibility("default"))) int paddle_mpi_start(int* rank, int* size, char* message,
                                                            size_t message_size) {
  int begun = 0, provided = 0;
  MPI_Initialized(&begun);
  if (!begun)
    if (const int status = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
        failed(status, message, message_size))
      return 1;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_SERIALIZED) {
    std::snprintf(message, message_size, "this MPI does not support threads");
    return 1;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return failed(MPI_Comm_rank(MPI_COMM_WORLD, rank), message, message_size) ||
         failed(MPI_Comm_size(MPI_COMM_WORLD, size), message, message_size);
}

__attribute__((visibility("default"))) void paddle_mpi_finish() { MPI_Finalize(); }

__attribute__((visibility("default"))) int paddle_mpi_begin(bool send, int peer, int channel,
                                                            const paddle_mpi_piece* pieces,
                                                            size_t count, void** request,
                                                            char* message, size_t message_size) {
  MPI_Datatype type{};
  if (failed(describe(pieces, count, &type), message, message_size)) return 1;
  MPI_Request begun{};
  const int status = send ? MPI_Isend(MPI_BOTTOM, 1, type, peer, channel, MPI_COMM_WORLD, &begun)
                          : MPI_Irecv(MPI_BOTTOM, 1, type, peer, channel, MPI_COMM_WORLD, &begun);
  MPI_Type_free(&type);  // lives as long as the request uses it
  if (failed(status, message, message_size)) return 1;
  *request = new MPI_Request(begun);
  return 0;
}

__attribute__((visibility("default"))) int paddle_mpi_test(void** request, bool* arrived,
                                                           bool* truncated, char* message,
                                                           size_t message_size) {
  auto* const waiting = static_cast<MPI_Request*>(*request);
  int done = 0;
  const int status = MPI_Test(waiting, &done, MPI_STATUS_IGNORE);
  *truncated = error_class(status) == MPI_ERR_TRUNCATE;
  *arrived = done != 0 || *truncated;
  if (*arrived) {
    delete waiting;
    *request = nullptr;
  }
  return *truncated ? 0 : failed(status, message, message_size);
}

__attribute__((visibility("default"))) int paddle_mpi_probe(int peer, int channel, bool* found,
                                                            uint64_t* bytes, char* message,
                                                            size_t message_size) {
  int there = 0;
  MPI_Status status;
  if (failed(MPI_Iprobe(peer, channel, MPI_COMM_WORLD, &there, &status), message, message_size))
    return 1;
  MPI_Count count = 0;
  if (there) MPI_Get_elements_x(&status, MPI_BYTE, &count);
  *found = there != 0;
  *bytes = static_cast<uint64_t>(count);
  return 0;
}

__attribute__((visibility("default"))) void paddle_mpi_cancel(void** request) {
  auto* const waiting = static_cast<MPI_Request*>(*request);
  MPI_Cancel(waiting);
  MPI_Request_free(waiting);
  delete waiting;
  *request = nullptr;
}
}
