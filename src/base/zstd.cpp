#include "src/base/zstd.h"

#include <algorithm>
#include <memory>
#include <vector>
#include <zstd.h>

#include "src/base/error.h"
#include "src/base/units.h"

namespace shmemctl {

namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

Error damaged(const std::string& subject, const std::string& cause) {
  return Error(ExitCode::usage, subject, "read", cause,
               "copy the archive again, or record the node again with shmemctl gather");
}

} // namespace

bool is_zstd(std::string_view bytes) {
  return bytes.substr(0, 4) == std::string_view("\x28\xb5\x2f\xfd", 4);
}

std::string zstd_compressed(std::string_view bytes) {
  constexpr int level = 10; // of 19 levels; 10 compresses a node's files in a tenth of a second
  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  std::size_t size = 0;
  if (context != nullptr) {
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
    size = ZSTD_compress2(context.get(), packed.data(), packed.size(), bytes.data(), bytes.size());
  }
  if (context == nullptr || ZSTD_isError(size) != 0)
    throw Error(ExitCode::unavailable, "Zstandard", "write the archive",
                context == nullptr ? "no memory" : ZSTD_getErrorName(size),
                "free memory, and try again");
  packed.resize(size);
  return packed;
}

std::string zstd_decompressed(std::string_view bytes, const std::string& subject,
                              std::size_t max_bytes) {
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (context == nullptr)
    throw Error(ExitCode::unavailable, subject, "read", "no memory", "free memory, and try again");
  std::string content;
  std::vector<char> piece(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::size_t left = 1; // 0 at the end of a frame
  // If the output buffer was full there may be more output, although all input has been read.
  for (bool full = true; in.pos < in.size || (full && left != 0);) {
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    const std::size_t before = in.pos;
    left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left) != 0)
      throw damaged(subject, std::string("not a whole Zstandard file: ") + ZSTD_getErrorName(left));
    if (out.pos > max_bytes - content.size())
      throw damaged(subject, "it unpacks to more than " + format_size_bytes(max_bytes) + "B");
    content.append(piece.data(), out.pos);
    full = out.pos == out.size;
    if (in.pos == before && out.pos == 0) // no progress
      break;
  }
  if (left != 0)
    throw damaged(subject, "the Zstandard file is cut off");
  return content;
}

} // namespace shmemctl
