// Package ec2 launches and ends hosts on EC2: fleets of type instant from a launch template per pool, with
// the requirements of a resource class in place of instance types, so that EC2 picks among all that fit.
//
// The request for an order is a function of the order and the configuration alone, because EC2 accepts a
// client token again only with the same parameters. What the adapter learns in the meantime, such as which
// offerings are short, goes into the next order before that is stored (Exhausted, Template).
//
// What a call of the port costs in requests to EC2, for n machines:
//
//	Launch      1 CreateFleet, ⌈n/200⌉ DescribeInstances; once per pool and process 1 DescribeSubnets;
//	            short of machines: 1 DescribeInstances more
//	Launched    1 DescribeInstances for each 1,000 machines found
//	Describe    ⌈n/200⌉ DescribeInstances, ⌈r/100⌉ DescribeInstanceStatus for the r of them that run
//	List        1 DescribeInstances for each 1,000 machines of the fleet, whatever the size of the pages
//	Terminate   ⌈n/100⌉ TerminateInstances; one more for each machine of a batch that was refused as a whole
//	Template    1 DescribeLaunchTemplates, at most once a minute and pool
//	Exhausted   none
//	Ensure      for each pool: 1 DescribeSubnets, and for each architecture 1 DescribeImages and 1 or 2
//	            DescribeLaunchTemplateVersions if all is well, up to 3 more if not
//
// A machine of a type that the catalogue does not know costs one DescribeInstanceTypes per type and process.
package ec2
