// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "mpi_library.h"

#include "core/communicator.h"

#include <dlfcn.h>

namespace disc {

namespace {

/// Numbers of MPI 5's interface, by its libraries' names.
void set_mpi5(MpiLibrary &mpi) {
  mpi.world = 0x101;
  mpi.byte = 0x247;
  mpi.errors_return = 0x143;
  mpi.any_source = -1;
  mpi.thread_multiple = 4096;
}

void set_mpich(MpiLibrary &mpi) {
  mpi.world = 0x44000000;
  mpi.byte = 0x4c00010d;
  mpi.errors_return = 0x54000001;
  mpi.any_source = -2;
  mpi.thread_multiple = 3;
  mpi.status_ignore = reinterpret_cast<void *>(1);
}

void set_open_mpi(MpiLibrary &mpi, void *library) {
  auto address = [&](const char *name) { return reinterpret_cast<MpiLibrary::Handle>(dlsym(library, name)); };
  mpi.world = address("ompi_mpi_comm_world");
  mpi.byte = address("ompi_mpi_byte");
  mpi.errors_return = address("ompi_mpi_errors_return");
  mpi.any_source = -1;
  mpi.thread_multiple = 3;
}

template <typename Function> bool find(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_functions(void *library, MpiLibrary &mpi) {
  return find(library, "MPI_Initialized", mpi.initialized) && find(library, "MPI_Finalized", mpi.finalized) &&
         find(library, "MPI_Query_thread", mpi.query_thread) && find(library, "MPI_Error_string", mpi.error_string) &&
         find(library, "MPI_Comm_size", mpi.comm_size) && find(library, "MPI_Comm_split", mpi.comm_split) &&
         find(library, "MPI_Comm_set_errhandler", mpi.comm_set_errhandler) && find(library, "MPI_Isend", mpi.isend) &&
         find(library, "MPI_Irecv", mpi.irecv) && find(library, "MPI_Recv", mpi.recv) &&
         find(library, "MPI_Iprobe", mpi.iprobe) && find(library, "MPI_Test", mpi.test);
}

/// Whether it is loaded, initialised, and not yet finalised.
bool is_in_use(const char *name, MpiLibrary &mpi) {
  void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  if (!library || !find_functions(library, mpi))
    return false;
  int initialized = 0, finalized = 0;
  mpi.initialized(&initialized);
  mpi.finalized(&finalized);
  std::string_view text(name);
  if (text.starts_with("libmpi_abi"))
    set_mpi5(mpi);
  else if (text == "libmpi.so.12")
    set_mpich(mpi);
  else
    set_open_mpi(mpi, library);
  return initialized && !finalized && mpi.world && mpi.byte && mpi.errors_return;
}

MpiLibrary library_in_use() {
  for (const char *name : {"libmpi.so.12", "libmpi.so.40", "libmpi_abi.so.1", "libmpi_abi.so.0"}) {
    MpiLibrary mpi;
    if (!is_in_use(name, mpi))
      continue;
    int provided = 0;
    mpi.query_thread(&provided);
    if (provided < mpi.thread_multiple)
      throw ExchangeFailure("MPI was initialised without MPI_THREAD_MULTIPLE");
    return mpi;
  }
  throw ExchangeFailure("no MPI library is loaded and initialised");
}

} // namespace

const MpiLibrary &MpiLibrary::instance() {
  static const MpiLibrary mpi = library_in_use();
  return mpi;
}

void MpiLibrary::check(int code) const {
  if (code == 0)
    return;
  constexpr int longest = 8192; // no library has longer messages
  std::string text(longest, '\0');
  int size = 0;
  if (error_string(code, text.data(), &size) != 0)
    size = 0;
  throw ExchangeFailure("MPI: " + text.substr(0, static_cast<size_t>(size)));
}

} // namespace disc
