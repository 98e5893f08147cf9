-- settles a day
update invoices set settled = true
where day = '{{period.start}}';
