// FLAC (RFC 9639): frames of subframes that predict samples and store the rest as Rice codes.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "formats/audio.h"

namespace paddle::formats {
namespace {

/// Reads bits, most significant first. Past the end it throws.
class Bits {
 public:
  Bits(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  uint64_t read(int count) {
    uint64_t out = 0;
    while (count > 0) {
      const int offset = static_cast<int>(at_ & 7), take = std::min(8 - offset, count);
      const size_t byte = at_ >> 3;
      if (byte >= bytes_.size()) damaged("the file is cut short");
      const auto value = std::to_integer<uint32_t>(bytes_[byte]);
      out = out << take | ((value >> (8 - offset - take)) & ((1u << take) - 1));
      at_ += static_cast<size_t>(take);
      count -= take;
    }
    return out;
  }
  int64_t read_signed(int count) {
    if (count == 0) return 0;
    const uint64_t raw = read(count);
    const int shift = 64 - count;
    return static_cast<int64_t>(raw << shift) >> shift;
  }
  /// Zeros before the next one.
  uint64_t unary(uint64_t most) {
    uint64_t out = 0;
    while (read(1) == 0)
      if (++out > most) damaged("a code that is too long");
    return out;
  }
  void align() { at_ = (at_ + 7) / 8 * 8; }
  size_t byte() const { return at_ >> 3; }
  void go_to(size_t byte) { at_ = byte * 8; }
  bool at_end() const { return byte() >= bytes_.size(); }
  std::span<const std::byte> between(size_t begin, size_t end) const {
    return bytes_.subspan(begin, end - begin);
  }
  [[noreturn]] void damaged(const char* what) const {
    fail(ErrorCode::kData, name_, ": damaged FLAC file at byte ", byte(), ": ", what);
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& name_;
  size_t at_ = 0;  ///< in bits
};

uint32_t crc(std::span<const std::byte> bytes, int width, uint32_t polynomial) {
  uint32_t out = 0;
  const uint32_t top = 1u << (width - 1), mask = (top << 1) - 1;
  for (const std::byte b : bytes) {
    out ^= std::to_integer<uint32_t>(b) << (width - 8);
    for (int i = 0; i < 8; ++i) out = (out & top ? out << 1 ^ polynomial : out << 1) & mask;
  }
  return out;
}

using Samples = std::vector<int64_t>;

/// Residuals after `order` samples, as partitions of Rice codes.
void read_residual(Bits& in, size_t order, Samples& out) {
  const uint64_t method = in.read(2);
  if (method > 1) in.damaged("an unknown kind of residual");
  const int parameter_bits = method == 0 ? 4 : 5;
  const auto partitions = size_t{1} << in.read(4);
  const size_t size = out.size() / partitions;
  if (out.size() % partitions != 0 || size < order) in.damaged("partitions that do not fit");
  size_t at = order;
  for (size_t p = 0; p < partitions; ++p) {
    const size_t end = (p + 1) * size;
    const auto parameter = static_cast<int>(in.read(parameter_bits));
    if (parameter == (1 << parameter_bits) - 1) {
      const auto bits = static_cast<int>(in.read(5));
      for (; at < end; ++at) out[at] = in.read_signed(bits);
    } else {
      for (; at < end; ++at) {
        const uint64_t high = in.unary(uint64_t{1} << 32);
        const uint64_t code = high << parameter | in.read(parameter);
        out[at] = static_cast<int64_t>(code >> 1) ^ -static_cast<int64_t>(code & 1);
      }
    }
  }
}

void read_subframe(Bits& in, int bits, Samples& out) {
  if (in.read(1) != 0) in.damaged("a subframe without its zero");
  const auto type = static_cast<int>(in.read(6));
  int wasted = 0;
  if (in.read(1)) wasted = static_cast<int>(in.unary(64)) + 1;
  bits -= wasted;
  if (bits < 1) in.damaged("samples without bits");
  const auto warm_up = [&](size_t order) {
    if (order > out.size()) in.damaged("a predictor longer than its block");
    for (size_t i = 0; i < order; ++i) out[i] = in.read_signed(bits);
  };
  // Sums are taken modulo 2^64, so that damaged files overflow without harm.
  const auto plus = [](int64_t a, uint64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + b);
  };
  if (type == 0) {
    const int64_t value = in.read_signed(bits);
    std::fill(out.begin(), out.end(), value);
  } else if (type == 1) {
    warm_up(out.size());
  } else if (type >= 8 && type <= 12) {
    constexpr int64_t kFixed[5][4] = {{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}};
    const auto order = static_cast<size_t>(type - 8);
    warm_up(order);
    read_residual(in, order, out);
    for (size_t i = order; i < out.size(); ++i)
      for (size_t k = 0; k < order; ++k)
        out[i] = plus(out[i], static_cast<uint64_t>(kFixed[order][k]) *
                                  static_cast<uint64_t>(out[i - 1 - k]));
  } else if (type >= 32) {
    const auto order = static_cast<size_t>(type - 31);
    warm_up(order);
    const auto precision = static_cast<int>(in.read(4)) + 1;
    if (precision == 16) in.damaged("an invalid precision");
    const int64_t shift = in.read_signed(5);
    if (shift < 0) in.damaged("a negative shift");
    std::array<int64_t, 32> coefficients{};
    for (size_t k = 0; k < order; ++k) coefficients[k] = in.read_signed(precision);
    read_residual(in, order, out);
    for (size_t i = order; i < out.size(); ++i) {
      int64_t sum = 0;
      for (size_t k = 0; k < order; ++k)
        sum = plus(sum,
                   static_cast<uint64_t>(coefficients[k]) * static_cast<uint64_t>(out[i - 1 - k]));
      out[i] = plus(out[i], static_cast<uint64_t>(sum >> shift));
    }
  } else {
    in.damaged("an unknown kind of subframe");
  }
  if (wasted > 0)
    for (int64_t& value : out) value = static_cast<int64_t>(static_cast<uint64_t>(value) << wasted);
}

struct Stream {
  int64_t rate = 0, channels = 0, bits = 0, total = 0;
};

/// A number in the form of UTF-8, up to seven bytes.
void skip_number(Bits& in) {
  const auto first = static_cast<uint8_t>(in.read(8));
  const int ones = std::countl_one(first);
  if (ones == 1 || ones > 7) in.damaged("a damaged frame number");
  for (int i = 1; i < ones; ++i)
    if (in.read(8) >> 6 != 2) in.damaged("a damaged frame number");
}

void read_frame(Bits& in, const Stream& stream, Sound& out) {
  const size_t begin = in.byte();
  if (in.read(15) != 0x7FFC) in.damaged("a frame is expected here");
  in.read(1);
  const auto size_code = static_cast<int>(in.read(4)), rate_code = static_cast<int>(in.read(4));
  const auto assignment = static_cast<int>(in.read(4)), depth_code = static_cast<int>(in.read(3));
  in.read(1);
  skip_number(in);
  uint64_t size = 0;
  if (size_code == 1)
    size = 192;
  else if (size_code >= 2 && size_code <= 5)
    size = uint64_t{144} << size_code;
  else if (size_code == 6)
    size = in.read(8) + 1;
  else if (size_code == 7)
    size = in.read(16) + 1;
  else if (size_code >= 8)
    size = uint64_t{1} << size_code;
  else
    in.damaged("a block without a size");
  if (rate_code == 12) in.read(8);
  if (rate_code == 13 || rate_code == 14) in.read(16);
  if (rate_code == 15) in.damaged("an invalid sample rate");
  const size_t header_end = in.byte();
  if (in.read(8) != crc(in.between(begin, header_end), 8, 0x07))
    in.damaged("the checksum of a header differs");
  constexpr int kDepths[] = {0, 8, 12, -1, 16, 20, 24, 32};
  const int depth = depth_code == 0 ? static_cast<int>(stream.bits) : kDepths[depth_code];
  const int channels = assignment < 8 ? assignment + 1 : 2;
  if (assignment > 10 || depth < 4 || channels != stream.channels)
    in.damaged("a frame that does not fit the stream");
  std::vector<Samples> parts(static_cast<size_t>(channels), Samples(size));
  for (int c = 0; c < channels; ++c) {
    const bool is_side =
        (assignment == 8 && c == 1) || (assignment == 9 && c == 0) || (assignment == 10 && c == 1);
    read_subframe(in, depth + (is_side ? 1 : 0), parts[static_cast<size_t>(c)]);
  }
  in.align();
  const size_t end = in.byte();
  if (in.read(16) != crc(in.between(begin, end), 16, 0x8005))
    in.damaged("the checksum of a frame differs");
  const double scale = 1 / (std::ldexp(1.0, depth - 1) * channels);
  for (size_t i = 0; i < size; ++i) {
    double sum = 0;
    if (assignment == 8)  // left and left - right
      sum = 2.0 * static_cast<double>(parts[0][i]) - static_cast<double>(parts[1][i]);
    else if (assignment == 9)  // left - right and right
      sum = static_cast<double>(parts[0][i]) + 2.0 * static_cast<double>(parts[1][i]);
    else if (assignment == 10)  // the mean, rounded down, and left - right
      sum = 2.0 * static_cast<double>(parts[0][i]) + static_cast<double>(parts[1][i] & 1);
    else
      for (const Samples& part : parts) sum += static_cast<double>(part[i]);
    out.samples.push_back(static_cast<float>(sum * scale));
  }
}

}  // namespace

Sound decode_flac(std::span<const std::byte> content, const std::string& name) {
  Bits in(content, name);
  if (content.size() < 42 || std::memcmp(content.data(), "fLaC", 4) != 0)
    fail(ErrorCode::kData, name, ": not a FLAC file");
  in.go_to(4);
  Stream stream;
  for (bool last = false; !last;) {
    last = in.read(1) == 1;
    const auto type = in.read(7);
    const size_t size = in.read(24), begin = in.byte();
    if (size > content.size() - begin) in.damaged("metadata that is cut short");
    if (type == 0) {
      if (size < 34) in.damaged("stream information that is cut short");
      in.go_to(begin + 10);
      stream.rate = static_cast<int64_t>(in.read(20));
      stream.channels = static_cast<int64_t>(in.read(3)) + 1;
      stream.bits = static_cast<int64_t>(in.read(5)) + 1;
      stream.total = static_cast<int64_t>(in.read(36));
    }
    in.go_to(begin + size);
  }
  if (stream.rate == 0) in.damaged("no sample rate");
  Sound out{stream.rate, stream.channels, {}};
  while (!in.at_end()) {
    if (static_cast<int64_t>(out.samples.size()) * stream.channels > kMaxSoundSamples)
      in.damaged("more samples than are decoded");
    // Players append tags after the last frame.
    if (stream.total > 0 && static_cast<int64_t>(out.samples.size()) >= stream.total) break;
    read_frame(in, stream, out);
  }
  if (stream.total > 0 && static_cast<int64_t>(out.samples.size()) != stream.total)
    in.damaged("fewer samples than the file announces");
  return out;
}

}  // namespace paddle::formats
