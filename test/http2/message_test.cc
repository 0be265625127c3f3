// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>

#include "http2/byte_queue.h"
#include "http2/grpc_message.h"
#include "support/raw_peer.h"

namespace devmgr::http2 {
namespace {

using namespace std::chrono_literals;

std::string Gzip(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 16;
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + kGzip, 8,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string result(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(result.size() - stream.avail_out);
  deflateEnd(&stream);
  return result;
}

TEST(GrpcMessage, IsReadOnlyWhenItIsTheOnlyOne) {
  const std::string one = Message("one");
  EXPECT_EQ(*ReadOnlyMessage(one, nullptr, 3), "one");
  EXPECT_EQ(*ReadOnlyMessage(Message(""), nullptr, 3), "");
  EXPECT_EQ(WithPrefix("one"), one);
  for (const std::string& broken :
       {std::string(), one.substr(0, 4), one.substr(0, 7), one + one, one + "x",
        "\x02" + one.substr(1)}) {
    EXPECT_EQ(ReadOnlyMessage(broken, nullptr, 3).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(ReadOnlyMessage(one, nullptr, 2).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(GrpcMessage, IsUnzipped) {
  const std::string text(100'000, 'z');
  const std::string zipped = Message(Gzip(text), true);
  const std::string gzip = "gzip";
  EXPECT_EQ(*ReadOnlyMessage(zipped, &gzip, text.size()), text);
  EXPECT_EQ(ReadOnlyMessage(zipped, &gzip, text.size() - 1).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadOnlyMessage(zipped, nullptr, 1 << 20).status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::string unknown = "snappy";
  EXPECT_EQ(ReadOnlyMessage(zipped, &unknown, 1 << 20).status().code(),
            absl::StatusCode::kUnimplemented);
  const std::string cut = Message(Gzip(text).substr(0, 50), true);
  EXPECT_EQ(ReadOnlyMessage(cut, &gzip, 1 << 20).status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::string more = Message(Gzip(text) + "x", true);
  EXPECT_EQ(ReadOnlyMessage(more, &gzip, 1 << 20).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(GrpcMessage, BoundariesAreFoundWhereverTheBytesAreCut) {
  const std::string all = Message("one") + Message("") + Message("three");
  for (std::size_t step = 1; step < all.size(); ++step) {
    MessageBoundary boundary;
    for (std::size_t i = 0; i < all.size(); i += step) {
      const std::size_t end = std::min(i + step, all.size());
      boundary.Feed(all.substr(i, step));
      EXPECT_EQ(boundary.between(), end == 8 || end == 13 || end == 23) << end;
    }
  }
}

TEST(GrpcTimeout, ReadsAndWritesItsUnits) {
  EXPECT_EQ(ParseTimeout("700m"), 700ms);
  EXPECT_EQ(ParseTimeout("99999999n"), 99'999'999ns);
  EXPECT_EQ(ParseTimeout("2S"), 2s);
  EXPECT_EQ(ParseTimeout("2M"), 2min);
  EXPECT_EQ(ParseTimeout("2H"), 2h);
  EXPECT_EQ(ParseTimeout("99999999H"), std::chrono::nanoseconds::max());
  for (const char* broken :
       {"", "m", "7", "7x", "-7m", "7 m", "123456789m", "1.5S"}) {
    EXPECT_FALSE(ParseTimeout(broken)) << broken;
  }
  EXPECT_EQ(FormatTimeout(700ms), "700000u");
  EXPECT_EQ(FormatTimeout(5ns), "5n");
  EXPECT_EQ(FormatTimeout(-5ns), "1n");
  EXPECT_EQ(FormatTimeout(2h), "7200000m");
  for (const auto time : {1ns, 99'999'999ns, 123'456'789'012ns}) {
    const auto back = ParseTimeout(FormatTimeout(time));
    ASSERT_TRUE(back);
    EXPECT_LE(*back, time);
    EXPECT_GE(*back, time - time / 1000);
  }
}

TEST(GrpcStatus, IsWrittenAndReadBack) {
  const absl::Status status = absl::NotFoundError("50% of \u20ac\n");
  const Headers headers = EndingWith(status, true);
  EXPECT_EQ(headers.front().name, ":status");
  EXPECT_EQ(*FindHeader(headers, "grpc-message"), "50%25 of %E2%82%AC%0A");
  EXPECT_EQ(StatusIn(headers), status);
  EXPECT_EQ(DecodeStatusMessage("%zz%4"), "%zz%4");
  EXPECT_EQ(StatusIn({}).code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(StatusIn({{"grpc-status", "17"}}).code(),
            absl::StatusCode::kUnknown);
  EXPECT_EQ(StatusIn({{"grpc-status", "5x"}}).code(),
            absl::StatusCode::kUnknown);
  EXPECT_TRUE(StatusIn({{"grpc-status", "0"}}).ok());
}

/// Takes `count` bytes as a socket would.
std::string Written(ByteQueue& queue, std::size_t count) {
  std::string bytes;
  while (bytes.size() < count) {
    std::array<iovec, 3> pieces;
    const std::size_t before = bytes.size();
    const std::size_t used = queue.Peek(pieces);
    for (const iovec& piece : std::span(pieces).first(used)) {
      bytes.append(static_cast<const char*>(piece.iov_base),
                   std::min(piece.iov_len, count - bytes.size()));
    }
    queue.Skip(bytes.size() - before);
  }
  return bytes;
}

TEST(ByteQueue, GivesBackWhatCameInOrder) {
  ByteQueue first;
  ByteQueue second;
  std::string expected;
  std::string got;
  for (int i = 0; i < 2000; ++i) {
    const std::string piece(static_cast<std::size_t>(i * 7919 % 9000),
                            static_cast<char>(i));
    if (i % 2 == 0) {
      first.Append(piece);
    } else {
      first.Append(std::make_shared<const std::string>(piece));
    }
    expected += piece;
    first.MoveTo(second, first.size() * static_cast<std::size_t>(i % 5) / 4);
    got += Written(second, second.size() * static_cast<std::size_t>(i % 7) / 6);
  }
  got += second.TakeAll() + first.TakeAll();
  EXPECT_TRUE(got == expected);
  EXPECT_TRUE(first.empty());
  EXPECT_TRUE(second.empty());
}

TEST(ByteQueue, SharesLongMessages) {
  const auto message = std::make_shared<const std::string>(100'000, 'x');
  ByteQueue body;
  body.Append(message);
  ByteQueue out;
  out.Append("head");
  body.MoveTo(out, 16'384);
  std::array<iovec, 3> pieces;
  ASSERT_EQ(out.Peek(pieces), 2u);
  EXPECT_EQ(pieces[1].iov_base, message->data());
  EXPECT_EQ(pieces[1].iov_len, 16'384u);
  // It is kept for as long as a part of it waits.
  body.Clear();
  EXPECT_EQ(message.use_count(), 2);
  out.Skip(out.size());
  EXPECT_EQ(message.use_count(), 1);
}

}  // namespace
}  // namespace devmgr::http2
