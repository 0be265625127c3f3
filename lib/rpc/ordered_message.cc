// SPDX-License-Identifier: Apache-2.0
#include "rpc/ordered_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace devmgr::rpc {

std::string EncodeInOrder(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  {
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    // Only a stream that is full makes it fail, and a string is none.
    message.SerializeToCodedStream(&out);
  }
  return bytes;
}

}  // namespace devmgr::rpc
