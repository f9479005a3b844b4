#pragma once
// The files of a lane from which a server that was killed continues exactly: a snapshot of its
// state, and a log of what has happened since. A record that the death of the process cut off at
// the end of the log is dropped: it was not answered. Other damage is an error.
//
//   lane-3/snapshot-12
//   lane-3/log-12

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

namespace paddle::ps {

/// Bytes in blocks with checksums, until the end of the file.
class SnapshotReader {
 public:
  /// kModel if the file is not a snapshot.
  explicit SnapshotReader(const std::string& path);
  /// Fills the bytes with the next ones. kModel if they are damaged or there are not enough.
  void read(std::span<std::byte> bytes);
  template <class T>
  T take() {
    T out;
    read(std::as_writable_bytes(std::span(&out, 1)));
    return out;
  }
  std::vector<std::byte> take_bytes();

 private:
  void next_block();
  std::string path_;
  std::shared_ptr<MappedFile> file_;
  std::span<const std::byte> left_, block_;  ///< of the file, and of the block that was checked
};

class SnapshotWriter {
 public:
  /// `syncs`: the file is on the disk before it is in its place.
  SnapshotWriter(std::string path, bool syncs);
  /// Removes the file unless it was put in its place.
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;
  void write(std::span<const std::byte> bytes);
  template <class T>
  void add(const T& value) {
    write(std::as_bytes(std::span(&value, 1)));
  }
  void add_bytes(std::span<const std::byte> bytes);
  /// Puts the file in its place; its size.
  uint64_t commit();

 private:
  void end_block();
  std::string path_, temporary_;
  bool syncs_;
  int descriptor_ = -1;
  uint64_t written_ = 0;
  std::vector<std::byte> block_;  ///< with its header
};

class LaneLog {
 public:
  /// Of the folder of a lane, which is made by the first snapshot. `syncs`: each record is on the
  /// disk before `add` returns; else it survives the death of the process.
  LaneLog(std::string folder, bool syncs);
  ~LaneLog();
  LaneLog(LaneLog&& other) noexcept;
  LaneLog& operator=(LaneLog&& other) = delete;

  using Record = std::function<void(uint16_t kind, std::span<const std::byte> body)>;
  /// Reads the newest snapshot, if there is one, and the records after it; `add` continues there.
  /// False if there is none. kModel if a file is damaged.
  bool restore(const std::function<void(SnapshotReader&)>& snapshot, const Record& record);
  /// Appends a record. kDevice if the disk rejects it.
  void add(uint16_t kind, std::span<const std::byte> body);
  /// Replaces all by a snapshot and an empty log.
  void replace(const std::function<void(SnapshotWriter&)>& snapshot);
  /// Removes all.
  void remove();

  uint64_t log_bytes() const { return log_bytes_; }
  uint64_t snapshot_bytes() const { return snapshot_bytes_; }

 private:
  std::string path(const char* name, uint64_t number) const;
  void open_log(bool keeps);
  void remove_older();

  std::string folder_;
  bool syncs_;
  uint64_t number_ = 0;  ///< of the newest snapshot; 0: none
  uint64_t log_bytes_ = 0, snapshot_bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace paddle::ps
