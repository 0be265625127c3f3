// SPDX-License-Identifier: Apache-2.0
//
// The limit for an idle devmgrd: a process that has gRPC and the ledger's
// database up, as bare as they come, and then sleeps. Started by `idle`.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <rocksdb/db.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "checkpoint/rocksdb_config.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const std::string folder = argv[1];

  rocksdb::Options options = devmgr::checkpoint::LedgerOptions(nullptr);
  options.create_if_missing = true;
  rocksdb::DB* opened = nullptr;
  if (!rocksdb::DB::Open(options, folder + "/db", &opened).ok()) return 1;
  const std::unique_ptr<rocksdb::DB> db(opened);

  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + folder + "/socket",
                           grpc::InsecureServerCredentials());
  builder.RegisterAsyncGenericService(&service);
  const auto queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;

  std::puts("ready");
  std::fflush(stdout);
  // Until a signal ends it: what it leaves behind goes with its folder.
  for (;;) pause();
}
