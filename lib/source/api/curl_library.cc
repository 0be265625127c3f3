// SPDX-License-Identifier: Apache-2.0
#include "source/api/curl_library.h"

#include <dlfcn.h>

#include <type_traits>

#include "common/status.h"

namespace devmgr::apiserver {
namespace {

/// The ABI that libcurl has had since 2006, by the name that the build for
/// OpenSSL has.
constexpr char kFile[] = "libcurl.so.4";

/// What went wrong in the last call of the dynamic loader.
const char* LoaderError() {
  const char* error = ::dlerror();
  return error != nullptr ? error : "unknown error";
}

}  // namespace

absl::StatusOr<CurlLibrary> LoadCurlFrom(const char* file) {
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return UnavailableError(
        "an API server is asked by libcurl, which cannot be loaded: {}",
        LoaderError());
  }
  CurlLibrary curl;
  absl::Status status;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        ::dlsym(library, name));
    if (function == nullptr) {
      status.Update(
          UnavailableError("{} cannot be used: {}", file, LoaderError()));
    }
  };
  find(curl.global_init, "curl_global_init");
  find(curl.easy_cleanup, "curl_easy_cleanup");
  find(curl.easy_init, "curl_easy_init");
  find(curl.easy_pause, "curl_easy_pause");
  find(curl.easy_setopt, "curl_easy_setopt");
  find(curl.easy_strerror, "curl_easy_strerror");
  find(curl.multi_add_handle, "curl_multi_add_handle");
  find(curl.multi_cleanup, "curl_multi_cleanup");
  find(curl.multi_info_read, "curl_multi_info_read");
  find(curl.multi_init, "curl_multi_init");
  find(curl.multi_perform, "curl_multi_perform");
  find(curl.multi_poll, "curl_multi_poll");
  find(curl.multi_remove_handle, "curl_multi_remove_handle");
  find(curl.multi_setopt, "curl_multi_setopt");
  find(curl.multi_wakeup, "curl_multi_wakeup");
  find(curl.slist_append, "curl_slist_append");
  find(curl.slist_free_all, "curl_slist_free_all");
  find(curl.strnequal, "curl_strnequal");
  DEVMGR_RETURN_IF_ERROR(status);
  const CURLcode started = curl.global_init(CURL_GLOBAL_DEFAULT);
  if (started == CURLE_OK) return curl;
  return UnavailableError("libcurl cannot be started: {}",
                          curl.easy_strerror(started));
}

absl::StatusOr<const CurlLibrary*> LoadCurl() {
  // Not unloaded: what it brings along has left work for the process's end.
  static const absl::StatusOr<CurlLibrary> loaded = LoadCurlFrom(kFile);
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

}  // namespace devmgr::apiserver
