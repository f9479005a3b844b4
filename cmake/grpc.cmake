# lib/libpaddle_grpc.so: engine/comm/grpc, opened by the room comm where servers of tables are on other
# machines, or parameter_server.channel is grpc.
find_path(GRPC_INCLUDE grpcpp/generic/async_generic_service.h)
find_library(GRPC_LIBRARY grpc++)
find_library(GRPC_CORE_LIBRARY grpc)
find_library(GPR_LIBRARY gpr)
if(GRPC_INCLUDE AND GRPC_LIBRARY AND GRPC_CORE_LIBRARY AND GPR_LIBRARY)
  paddle_module(grpc SOURCES ${CMAKE_SOURCE_DIR}/engine/comm/grpc/module.cc
    INCLUDES ${GRPC_INCLUDE} LIBRARIES ${GRPC_LIBRARY} ${GRPC_CORE_LIBRARY} ${GPR_LIBRARY})
endif()
