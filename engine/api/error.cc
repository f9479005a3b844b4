#include "paddle/error.h"

#include "api/access.h"
#include "paddle/version.h"

namespace paddle::v0 {

Error::Error(ErrorCode code, const std::string& what, std::string file, int line, int column,
             std::vector<std::string> notes)
    : std::runtime_error(what),
      code_(code),
      file_(std::move(file)),
      line_(line),
      column_(column),
      notes_(std::move(notes)) {}

// Defined here so that the type information of each class is in the library only.
Error::~Error() = default;
UsageError::~UsageError() = default;
ConfigError::~ConfigError() = default;
DataError::~DataError() = default;
ModelError::~ModelError() = default;
DeviceError::~DeviceError() = default;
PeerError::~PeerError() = default;
InternalError::~InternalError() = default;

void rethrow(const paddle::Error& error) {
  const auto raise = [&]<class E>(TypeTag<E>, ErrorCode code) {
    const SourceLocation& at = error.location();
    throw E(code, error.what(), at.file, at.line, at.column, error.notes());
  };
  switch (error.code()) {
    case paddle::ErrorCode::kUsage:
      raise(TypeTag<UsageError>{}, ErrorCode::kUsage);
      break;
    case paddle::ErrorCode::kConfig:
      raise(TypeTag<ConfigError>{}, ErrorCode::kConfig);
      break;
    case paddle::ErrorCode::kData:
      raise(TypeTag<DataError>{}, ErrorCode::kData);
      break;
    case paddle::ErrorCode::kModel:
      raise(TypeTag<ModelError>{}, ErrorCode::kModel);
      break;
    case paddle::ErrorCode::kDevice:
      raise(TypeTag<DeviceError>{}, ErrorCode::kDevice);
      break;
    case paddle::ErrorCode::kPeer:
      raise(TypeTag<PeerError>{}, ErrorCode::kPeer);
      break;
    case paddle::ErrorCode::kDifference:
    case paddle::ErrorCode::kInternal:
      break;
  }
  throw InternalError(ErrorCode::kInternal, error.what());
}

const char* version() noexcept { return PADDLE_VERSION_STRING; }

}  // namespace paddle::v0
