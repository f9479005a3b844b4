// read_file and decode_jpeg.

#include <cstring>

#include "base/files.h"
#include "formats/image_decode.h"
#include "ops/core/kernel.h"
#include "ops/generated/vision.h"

namespace paddle::io_kernels {

std::unique_ptr<Kernel> prepare_read_file(const KernelRequest& request) {
  const std::string name = ReadFileAttrs(request.attrs).filename;
  return make_kernel([=](const RunContext& context, void* const*, void* const*) {
    const std::string content = paddle::read_file(name);
    void* const out = context.allocator->allocate(0, {static_cast<int64_t>(content.size())});
    if (!content.empty()) std::memcpy(out, content.data(), content.size());
  });
}

std::unique_ptr<Kernel> prepare_decode_jpeg(const KernelRequest& request) {
  const std::string mode = DecodeJpegAttrs(request.attrs).mode;
  const auto size = static_cast<size_t>(request.operands[0].size());
  return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
    const std::span<const std::byte> content(static_cast<const std::byte*>(operands[0]), size);
    const formats::DecodedImage decoded =
        formats::decode_jpeg(content, mode == "gray", "decode_jpeg");
    const formats::Image& image = decoded.image;
    if (image.channels != 1 && image.channels != 3)
      fail(ErrorCode::kData, "decode_jpeg: an image of ", image.channels,
           " channels is neither grey nor RGB");
    // The decoder turns grey pixels into RGB unless asked for grey.
    const int64_t channels = mode == "unchanged" && decoded.stored_grey ? 1 : image.channels;
    auto* out = static_cast<uint8_t*>(
        context.allocator->allocate(0, {channels, image.height, image.width}));
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < image.height * image.width; ++i)
        *out++ = image.pixels[static_cast<size_t>(i * image.channels + c)];
  });
}

}  // namespace paddle::io_kernels
