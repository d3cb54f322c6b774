// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// An axis grows by the number of the members of a group.
// CHECK-LABEL: module attributes {disc.participants = 4 : i64
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: "stablehlo.all_gather"{{.*}} -> tensor<?x?xf32, [@m, @"2*n"]>
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32> {
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
}

// -----

// A gathered axis whose stated size is no multiple of the number of members.
// CHECK: error: stablehlo.all_gather at line {{[0-9]+}}: the sizes 2*n and 7 must be equal and never are
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?x?xf32, [@m, @n]>) -> tensor<?x7xf32> {
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<?x?xf32, [@m, @n]>) -> tensor<?x7xf32>
    return %0 : tensor<?x7xf32>
  }
}

// -----

// A reduction over the participants keeps the shape.
// CHECK-LABEL: module attributes {disc.participants = 4 : i64
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: "stablehlo.all_reduce"
// CHECK: (tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32, [@m, @n]>
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32> {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
}

// -----

// A reduction over the participants to a size that the operand never has.
// CHECK: error: stablehlo.all_reduce at line {{[0-9]+}}: the sizes 2*n and 5 must be equal and never are
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?xf32, [@"2*n"]>) -> tensor<5xf32> {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<?xf32, [@"2*n"]>) -> tensor<5xf32>
    return %0 : tensor<5xf32>
  }
}

// -----

// Each member of a group gets its part of an axis, which has to be a multiple of their number.
// CHECK-LABEL: module attributes {disc.participants = 4 : i64
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {divisor = 2 : i64, min = 0 : i64, name = "n"}
// CHECK: "disc.dim"() {min = 0 : i64, name = "floordiv(n, 2)"}
// CHECK-NEXT: "disc.constraint"() {origin = "stablehlo.reduce_scatter at line {{[0-9]+}}", relation = "mod(n, 2) == 0"}
// CHECK: "stablehlo.reduce_scatter"
// CHECK: (tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32, [@m, @"floordiv(n, 2)"]>
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32> {
    %0 = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
}

// -----

// An axis that is known to be a multiple of the number of members has nothing left to check.
// CHECK-LABEL: module attributes {disc.participants = 4 : i64
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: (tensor<?xf32, [@"4*n"]>) -> tensor<?xf32, [@"2*n"]>
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?xf32, [@"4*n"]>) -> tensor<?xf32> {
    %0 = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<?xf32, [@"4*n"]>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}

// -----

// An axis that never is a multiple of the number of members.
// CHECK: error: stablehlo.reduce_scatter at line {{[0-9]+}}: {{.*}} == 0 must hold and never does
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?xf32, [@"2*n + 1"]>) -> tensor<?xf32> {
    %0 = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<?xf32, [@"2*n + 1"]>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}

// -----

// An exchange divides one axis and multiplies another.
// CHECK-LABEL: module attributes {disc.participants = 4 : i64
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.symbol"() {divisor = 2 : i64, min = 0 : i64, name = "m"}
// CHECK: "disc.constraint"() {origin = "stablehlo.all_to_all at line {{[0-9]+}}", relation = "mod(m, 2) == 0"}
// CHECK: "stablehlo.all_to_all"{{.*}} -> tensor<?x?xf32, [@"floordiv(m, 2)", @"2*n"]>
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32> {
    %0 = "stablehlo.all_to_all"(%x) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
}

// -----

// An exchange along one axis keeps its size.
// CHECK-LABEL: module attributes {disc.participants = 4 : i64
// CHECK-NEXT: "disc.signature"()
// CHECK: "disc.constraint"() {origin = "stablehlo.all_to_all at line {{[0-9]+}}", relation = "mod(n, 2) == 0"}
// CHECK: "stablehlo.all_to_all"{{.*}} -> tensor<?xf32, [@n]>
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
    %0 = "stablehlo.all_to_all"(%x) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<?xf32, [@n]>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}

// -----

// An exchange of an axis that never can be divided.
// CHECK: error: stablehlo.all_to_all at line {{[0-9]+}}: {{.*}} == 0 must hold and never does
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?x?xf32, [@"2*m + 1", @n]>) -> tensor<?x?xf32> {
    %0 = "stablehlo.all_to_all"(%x) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<?x?xf32, [@"2*m + 1", @n]>) -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
}

// -----

// What one member sends to the others has the shape of its operand.
// CHECK-LABEL: module attributes {disc.participants = 4 : i64
// CHECK-NEXT: "disc.signature"()
// CHECK: "stablehlo.collective_broadcast"{{.*}} -> tensor<?x?xf32, [@m, @n]>
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32> {
    %0 = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
}

// -----

// A static result of a broadcast says what the operand's size is.
// CHECK-LABEL: module attributes {disc.participants = 4 : i64
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<5xf32>) -> tensor<5xf32>
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<5xf32> {
    %0 = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<?xf32, [@n]>) -> tensor<5xf32>
    return %0 : tensor<5xf32>
  }
}

// -----

// What members pass on has the shape of the operand.
// CHECK-LABEL: module attributes {disc.participants = 4 : i64
// CHECK-NEXT: "disc.signature"()
// CHECK: "stablehlo.collective_permute"{{.*}} -> tensor<?x?xf32, [@m, @n]>
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32> {
    %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [1, 2], [2, 0]]> : tensor<3x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<?x?xf32, [@m, @n]>) -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
}

// -----

// What members pass on never has another size.
// CHECK: error: stablehlo.collective_permute at line {{[0-9]+}}: the sizes n + 6 and 5 must be equal and never are
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?xf32, [@"n + 6"]>) -> tensor<5xf32> {
    %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<?xf32, [@"n + 6"]>) -> tensor<5xf32>
    return %0 : tensor<5xf32>
  }
}

// -----

// The numbers of a participant have no sizes.
// CHECK-LABEL: module attributes {disc.participants = 4 : i64
// CHECK-NEXT: "disc.signature"()
// CHECK: stablehlo.partition_id : tensor<ui32>
// CHECK: stablehlo.replica_id : tensor<ui32>
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main() -> (tensor<ui32>, tensor<ui32>) {
    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.replica_id : tensor<ui32>
    return %0, %1 : tensor<ui32>, tensor<ui32>
  }
}

// -----

// Groups of more participants than there are say nothing of how an axis grows.
// CHECK: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.all_gather {{.*}}: {{.*}} name more than the 4 participants that there are
module attributes {mhlo.num_partitions = 4 : i32, disc.participants = 4 : i64} {
  func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<?xf32, [@n]>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}

// -----

// A program that runs alone has no collectives of several participants.
// CHECK: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.all_gather {{.*}}: it is for 2 participants; a program runs on one
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
