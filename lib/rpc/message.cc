// SPDX-License-Identifier: Apache-2.0
#include "rpc/message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <climits>

namespace devmgr::rpc {

using google::protobuf::internal::WireFormatLite;

bool ForEachField(std::string_view bytes, int field,
                  const std::function<bool(std::string_view)>& use) {
  if (bytes.size() > INT_MAX) return false;
  google::protobuf::io::CodedInputStream input(
      reinterpret_cast<const std::uint8_t*>(bytes.data()),
      static_cast<int>(bytes.size()));
  const std::uint32_t wanted =
      WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  while (const std::uint32_t tag = input.ReadTag()) {
    if (tag != wanted) {
      if (!WireFormatLite::SkipField(&input, tag)) return false;
      continue;
    }
    std::uint32_t size = 0;
    if (!input.ReadVarint32(&size) || size > INT_MAX) return false;
    const auto begin = static_cast<std::size_t>(input.CurrentPosition());
    if (!input.Skip(static_cast<int>(size))) return false;
    if (!use(bytes.substr(begin, size))) return true;
  }
  return input.ConsumedEntireMessage();
}

}  // namespace devmgr::rpc
