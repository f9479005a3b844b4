#pragma once
// The exceptions of the library. Catch `paddle::Error` for all of them, or a subclass for one kind.
// Exceptions thrown by your own callbacks pass through the library unchanged.

#include <stdexcept>
#include <string>
#include <vector>

#include "paddle/config.h"

namespace paddle::v0 {

/// Kinds of errors. The values are the exit codes of the command-line tools and the status codes of
/// the C interface.
enum class ErrorCode : int {
  kUsage = 2,      ///< a call with invalid arguments
  kConfig = 3,     ///< a YAML or JSON file
  kData = 4,       ///< a dataset, or an input of a model
  kModel = 5,      ///< weights or a model file
  kDevice = 6,     ///< memory, disk or device
  kPeer = 7,       ///< another rank of the run was lost
  kInternal = 70,  ///< a bug in the library
};

/// One line says what was found, what was expected, and where.
class PADDLE_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& what, std::string file = {}, int line = 0,
        int column = 0, std::vector<std::string> notes = {});
  ~Error() override;

  ErrorCode code() const noexcept { return code_; }
  /// The text file at fault, "" if there is none. Lines and columns count from 1; 0 is unknown.
  const std::string& file() const noexcept { return file_; }
  int line() const noexcept { return line_; }
  int column() const noexcept { return column_; }
  /// Further errors of the same file, or the call sites that led to this one. `what()` has them on
  /// lines of their own.
  const std::vector<std::string>& notes() const noexcept { return notes_; }

 private:
  ErrorCode code_;
  std::string file_;
  int line_, column_;
  std::vector<std::string> notes_;
};

class PADDLE_API UsageError : public Error {
 public:
  using Error::Error;
  ~UsageError() override;
};
class PADDLE_API ConfigError : public Error {
 public:
  using Error::Error;
  ~ConfigError() override;
};
class PADDLE_API DataError : public Error {
 public:
  using Error::Error;
  ~DataError() override;
};
class PADDLE_API ModelError : public Error {
 public:
  using Error::Error;
  ~ModelError() override;
};
class PADDLE_API DeviceError : public Error {
 public:
  using Error::Error;
  ~DeviceError() override;
};
class PADDLE_API PeerError : public Error {
 public:
  using Error::Error;
  ~PeerError() override;
};
class PADDLE_API InternalError : public Error {
 public:
  using Error::Error;
  ~InternalError() override;
};

}  // namespace paddle::v0
